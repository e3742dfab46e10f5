// One file on its way through the lanes: what lanes and the runner need to know of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "staging/files/io/direct_io.hpp"
#include "staging/files/tree.hpp"
#include "staging/manifest/hash.hpp"

namespace spark::staging {

// An open file; `tree` and `path` name it in errors.
struct OpenedFile {
  const Tree* tree = nullptr;
  std::string path;
  UniqueFd fd;
  IoMode mode;
  Bytes size = 0;
  bool is_sparse = false;  // takes less space than its size: worth looking for holes
};

struct PieceOutcome {
  Digest digest;
  bool is_vouched_for = true;  // false: its digest is of what another host sent, and still to be proven
  bool ended_early = false;    // the file is shorter than `size` by now; the digest says nothing then
};

struct WorkFiles {
  const OpenedFile& source;
  const OpenedFile* copy = nullptr;  // where it is written; none: it is only hashed
};

// start, then each piece to do, from any thread, then finish in the thread of the last piece.
class FileWork {
 public:
  virtual ~FileWork() = default;
  virtual Result<> start() = 0;

  // After start.
  virtual std::vector<std::uint64_t> to_do() const = 0;  // pieces, the last first; none: all are known
  virtual WorkFiles files() const = 0;

  // From any thread: before a read, after its bytes were hashed and written, after a piece.
  virtual Result<> before_read(Bytes offset, std::size_t bytes) = 0;
  virtual void moved(Bytes bytes) = 0;
  virtual void piece_done(std::uint64_t piece, const PieceOutcome& outcome) = 0;

  // Whether it is done; false: all of it once more, as after start.
  virtual Result<bool> finish() = 0;
};

}  // namespace spark::staging
