#include "bench/record/facts.hpp"

#include <array>

namespace spark::bench {
namespace {

constexpr std::array kKinds = {std::pair{PathKind::Unknown, "unknown"}, std::pair{PathKind::Local, "local"},
                               std::pair{PathKind::RemoteBlock, "remote_block"},
                               std::pair{PathKind::Nas, "nas"}, std::pair{PathKind::Memory, "memory"}};

}  // namespace

const char* to_string(PathKind kind) {
  for (const auto& [known, name] : kKinds) {
    if (known == kind) return name;
  }
  return "unknown";
}

PathKind path_kind_from(std::string_view name) {
  for (const auto& [kind, known] : kKinds) {
    if (known == name) return kind;
  }
  return PathKind::Unknown;
}

}  // namespace spark::bench
