#include "bench/record/facts.hpp"

namespace spark::bench {

const char* to_string(PathKind kind) {
  static constexpr const char* kWords[] = {"unknown", "local", "remote_block", "nas", "memory"};
  return kWords[static_cast<std::size_t>(kind)];
}

}  // namespace spark::bench
