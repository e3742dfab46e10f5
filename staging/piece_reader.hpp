// Reads and hashes one piece of a file, holes by their length alone.
#pragma once

#include <functional>
#include <string>

#include "base/result.hpp"
#include "staging/direct_io.hpp"
#include "staging/hash.hpp"
#include "staging/tree.hpp"

namespace spark::staging {

// An open file to read; `tree` and `path` name it in errors.
struct Readable {
  const Tree* tree = nullptr;
  std::string path;
  UniqueFd fd;
  IoMode mode;
  Bytes size = 0;
  bool is_sparse = false;  // takes less space than its size: worth looking for holes
};

struct PieceOutcome {
  Digest digest;
  bool ended_early = false;  // the file is shorter than `size` by now; the digest says nothing then
};

struct PieceVisitor {
  std::function<Result<>(Bytes offset, std::size_t bytes)> before_read;
  std::function<Result<>(Bytes offset, std::size_t bytes)> after_read;  // the bytes are in the buffer
  std::function<void(Bytes bytes)> hole;
};

Result<PieceOutcome> read_piece(const Readable& file, std::uint64_t index, IoBuffer& buffer,
                                const PieceVisitor& visitor);

}  // namespace spark::staging
