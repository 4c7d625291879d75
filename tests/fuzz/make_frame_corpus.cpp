// Writes the frame fuzzer's seeds: two frames of every message, and some broken headers.
// Usage: make_frame_corpus DIRECTORY

#include <filesystem>
#include <fstream>
#include <iostream>

#include "message_generator.h"
#include "wire/codec.h"

namespace {

using namespace pallas;

bool write(const std::filesystem::path& path, const kv::Bytes& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  return file.good();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: make_frame_corpus DIRECTORY\n";
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  bool good = true;
  for (std::size_t type = 0; type < std::variant_size_v<wire::Message>; ++type) {
    wire::MessageGenerator generator(1000 + type);
    for (int round = 0; round < 2; ++round) {
      const wire::Message message = generator.make(type);
      const auto frame = wire::encode(message);
      const std::string file = std::string(wire::name_of(message)) + "_" + std::to_string(round);
      good = good && frame && write(folder / file, *frame);
    }
  }
  kv::Bytes frame = *wire::encode(wire::KeepAlive{1, false});
  frame[11] = std::byte{0xff};
  good = good && write(folder / "body_of_4_gib", frame);
  frame[0] = std::byte{'G'};
  good = good && write(folder / "wrong_magic", frame);
  frame.resize(7);
  good = good && write(folder / "cut_header", frame);
  return good ? 0 : 1;
}
