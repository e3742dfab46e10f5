// Small files of weights with valid headers.
#pragma once

#include <cstdint>
#include <string>

namespace spark::staging {

inline std::string little(std::uint64_t value, std::size_t bytes) {
  std::string raw;
  for (; raw.size() < bytes; value >>= 8) raw += static_cast<char>(value & 0xff);
  return raw;
}

inline std::string safetensors(const std::string& header, std::size_t data) {
  return little(header.size(), 8) + header + std::string(data, 'x');
}

inline constexpr char kTwoTensors[] =
    R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
    R"("b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})";

inline std::string named(const std::string& name) {
  return little(name.size(), 8) + name;
}

// Two tensors: 64 floats at 0, and 256 elements of Q4_K (144 bytes) at 256.
inline std::string gguf(const std::string& values, std::uint64_t count, std::uint64_t version = 3) {
  std::string head = "GGUF" + little(version, 4) + little(2, 8) + little(count, 8) + values;
  head += named("a") + little(2, 4) + little(32, 8) + little(2, 8) + little(0, 4) + little(0, 8);
  head += named("b") + little(1, 4) + little(256, 8) + little(12, 4) + little(256, 8);
  head.resize((head.size() + 31) / 32 * 32);
  return head + std::string(256 + 144, 'x');
}

// A text, an array of texts, an array of numbers, and an array of arrays.
inline std::string some_values() {
  return named("general.name") + little(8, 4) + named("tiny") +                                        //
         named("tokens") + little(9, 4) + little(8, 4) + little(2, 8) + named("one") + named("two") +  //
         named("scores") + little(9, 4) + little(6, 4) + little(2, 8) + little(0, 8) +                 //
         named("nested") + little(9, 4) + little(9, 4) + little(1, 8) + little(0, 4) + little(3, 8) + "abc";
}

inline std::string whole_safetensors() {
  return safetensors(kTwoTensors, 12);
}

inline std::string whole_gguf() {
  return gguf(some_values(), 4);
}

// `part`: from 1 on.
inline std::string gguf_part(unsigned part, unsigned parts) {
  return gguf(named("split.no") + little(2, 4) + little(part - 1, 2) +  //
                  named("split.count") + little(2, 4) + little(parts, 2),
              2);
}

}  // namespace spark::staging
