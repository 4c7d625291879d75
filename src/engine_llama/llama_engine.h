#pragma once
// llama.cpp behind the Engine port.
//
//   node's thread: LlamaEngine --Command--> Mailbox --> EngineLoop :engine thread
//                       ^------------------ Post <-- Event ------------+

#include <map>
#include <memory>
#include <thread>

#include "engine/engine.h"
#include "engine_llama/codec.h"
#include "engine_llama/decoder.h"
#include "engine_llama/engine_loop.h"
#include "engine_llama/llama_config.h"
#include "engine_llama/mailbox.h"
#include "engine_llama/model.h"
#include "engine_llama/task.h"

namespace pallas::engine {

// Made and destroyed on the node's thread, like every call but those of codec(); not destroyed from
// inside an event. Tasks that were posted and not yet run when it is destroyed do nothing.
class LlamaEngine : public Engine {
 public:
  ~LlamaEngine() override;

  void set_events(EngineEvents* events) override { events_ = events; }
  const EngineInfo& info() const override { return info_; }
  Result<SlotId> reserve(TokenPosition tokens) override;
  std::uint32_t free_slots() const override;
  void prefill(SlotId slot, TokenPosition first, std::vector<TokenId> tokens) override;
  void replay(SlotId slot, TokenPosition first, std::vector<TokenId> tokens) override;
  void abort(SlotId slot) override;
  void attach_kv(SlotId slot, TokenPosition first, TokenPosition count, kv::Bytes rows) override;
  void attach_scattered(SlotId slot, kv::Coverage positions, kv::Bytes rows) override;
  void export_kv(SlotId slot, kv::TokenRange range) override;
  void truncate(SlotId slot, TokenPosition front) override;
  void rank(SlotId slot, RankRequest request) override;
  void decode(SlotId slot, DecodeParams params) override;
  void pause(SlotId slot) override;
  void release(SlotId slot) override;

  // Any thread, as long as the engine lives.
  const TextCodec& codec() const { return *codec_; }

 private:
  friend Result<std::unique_ptr<LlamaEngine>> make_llama_engine(const LlamaConfig& config,
                                                                Post post);
  struct Gate;  // through which posted tasks find the engine while it lives
  class Delivery;
  struct Known {
    bool refused = false;  // a command found the mailbox full; on_failed is on its way
    bool failed = false;   // on_failed was given
  };

  LlamaEngine(LlamaModel model, Post post);
  void start(const LlamaConfig& config);
  void give(SlotId slot, decltype(Command::what) what, bool always = false);
  void deliver(std::vector<Event>& events);
  void deliver(Event& event);

  LlamaModel model_;
  Post post_;
  std::unique_ptr<Decoder> decoder_;
  std::unique_ptr<LlamaTextCodec> codec_;
  EngineInfo info_;
  EngineEvents* events_ = nullptr;
  std::map<SlotId, Known> slots_;
  std::uint64_t last_slot_ = 0;
  std::shared_ptr<Gate> gate_;
  Mailbox mailbox_;
  std::unique_ptr<EngineLoop> loop_;
  std::thread thread_;
};

// A ready engine: model loaded, profile and self-test known. Takes the time of both when the cache
// does not have them yet (about 15 s); meant for start-up. kInvalidConfig names the setting.
Result<std::unique_ptr<LlamaEngine>> make_llama_engine(const LlamaConfig& config, Post post);

}  // namespace pallas::engine
