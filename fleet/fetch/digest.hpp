// A lane's buffer as text of the network, and the hash of its data.
#pragma once

#include <cstddef>
#include <span>

#include "staging/files/io/direct_io.hpp"
#include "staging/manifest/hash.hpp"

namespace spark::fleet {

inline std::span<char> chars_of(const staging::IoBuffer& buffer) {
  return {reinterpret_cast<char*>(buffer.data()), buffer.size()};
}

inline staging::Digest digest_of(const std::byte* data, std::size_t bytes) {
  staging::Hasher hasher;
  hasher.add(std::span(data, bytes));
  return hasher.digest();
}

}  // namespace spark::fleet
