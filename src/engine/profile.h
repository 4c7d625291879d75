#pragma once
// What an engine costs on this machine, measured by itself, and what decides whether two engines
// may exchange a session.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "kv/geometry.h"

namespace pallas::engine {

// Costs as curves over depth (tokens in the session's cache) and batch size. Piecewise linear
// between the points, constant beyond them; points ascend.
struct Profile {
  struct PrefillPoint {
    TokenPosition depth = 0;
    Seconds per_token{0};  // at chunk_tokens
  };
  struct DecodePoint {
    std::uint32_t batch = 1;
    TokenPosition depth = 0;
    Seconds step{0};
  };
  TokenPosition chunk_tokens = 32;  // best prefill chunk
  std::vector<PrefillPoint> prefill;
  std::vector<DecodePoint> decode;
  Seconds export_per_token{0};
  Seconds attach_per_token{0};
  Seconds load{0};  // weights to ready; 0 when resident (T_load)

  // Seconds to prefill positions [from, to) alone on the engine.
  Seconds prefill_time(TokenPosition from, TokenPosition to) const;
  // Mean prefill rate over [from, to), r_p.
  TokensPerSecond prefill_rate(TokenPosition from, TokenPosition to) const;
  Seconds decode_step(std::uint32_t batch, TokenPosition depth) const;
  // Whether `few` sessions whose readers wait should have a step of their own before the one of all
  // `batch`: it takes at most half as long, so that the others wait little for it.
  bool step_first(std::size_t few, std::size_t batch, TokenPosition depth) const;
};

// Two parts (design decision 0003): what must agree or the move is refused by name before any KV
// byte moves, and what exactness needs, where a difference only makes `exact` unavailable.
struct CompatibilityRecord {
  // Must agree.
  std::string model_hash;      // XXH3-128 of the weights file, hex
  std::string tokenizer_hash;  // XXH3-128 over all pieces and attributes, hex
  std::uint32_t context_tokens = 0;
  std::string rope;       // type, base and scale as text
  std::string kv_types;   // e.g. "k=f16,v=f16"
  std::string kv_layout;  // e.g. "rows-v1,layers=30,k=384,v=384"
  std::uint32_t block_tokens = 0;
  std::string adapter;  // LoRA hash, empty: none
  // Exactness needs.
  std::string instruction_set;  // e.g. "AVX512_VNNI"
  std::string engine_build;     // engine name and version
  std::uint32_t threads = 0;
  bool flash_attention = false;
  friend bool operator==(const CompatibilityRecord&, const CompatibilityRecord&) = default;
};

// Fails with kIncompatible and the name and both values of the first field of the first part that
// differs.
Status check_compatible(const CompatibilityRecord& ours, const CompatibilityRecord& theirs);
// Empty, or the name of the first field of the second part that differs.
std::string why_not_exact(const CompatibilityRecord& ours, const CompatibilityRecord& theirs);

// What the engine's self-test proved bit-equal here, and what it can do.
struct Capabilities {
  bool exact_chunked_prompt = false;     // a prompt recomputed in any chunks equals itself
  bool exact_chunked_generated = false;  // generated tokens recomputed in chunks equal single steps
  bool exact_single_step = false;        // replayed one per step, beside any neighbour
  bool exact_attach = false;             // moved rows continue bit-equal
  TokenPosition attach_granularity = 1;
  bool late_attach = true;  // rows may be attached after other positions were computed
  bool holes = false;       // attach_scattered()
};

struct EngineInfo {
  std::string model_name;  // as in GET /v1/models
  CompatibilityRecord compatibility;
  kv::Geometry geometry;
  TokenPosition context_tokens = 0;  // of one session
  std::uint32_t slots = 0;           // sessions at once
  Capabilities capabilities;
  Profile profile;
};

}  // namespace pallas::engine
