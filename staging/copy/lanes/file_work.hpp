// One file being processed by the lanes: the interface that lanes and the runner use.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "staging/files/io/direct_io.hpp"
#include "staging/files/tree.hpp"
#include "staging/manifest/units.hpp"

namespace spark::staging {

// An open file; `tree` and `path` name it in errors.
struct OpenedFile {
  const Tree* tree = nullptr;
  std::string path;
  UniqueFd fd;
  IoMode mode;
  Bytes size = 0;
  bool is_sparse = false;  // allocated space is below its size: check for holes
};

struct PieceOutcome {
  Digest digest;
  bool is_vouched_for = true;  // false: the digest is of data from another host, and not proven yet
  bool ended_early = false;    // the file is now shorter than `size`, so the digest is meaningless
  // Only these units of the piece have arrived, and the digest is none of the piece. They may come before the
  // piece is begun, and again with it.
  std::optional<UnitRange> units{};
};

struct WorkFiles {
  const OpenedFile& source;
  // Destination; none means that the file is only hashed. If readers wait for units, it can be read.
  const OpenedFile* copy = nullptr;
};

// Call start, then process each piece from any thread; the thread of the last piece calls finish.
class FileWork {
 public:
  virtual ~FileWork() = default;
  virtual Result<> start() = 0;

  // After start.
  virtual std::vector<std::uint64_t> to_do() const = 0;  // pieces, the last first; none if all are known
  virtual WorkFiles files() const = 0;

  // From any thread: before a read; after its bytes were hashed and written; after a piece, or units of it.
  virtual Result<> before_read(Bytes offset, std::size_t bytes) = 0;
  virtual void moved(Bytes bytes) = 0;
  virtual void piece_done(std::uint64_t piece, const PieceOutcome& outcome) = 0;

  // Whether the file is done; false means that all pieces are needed again, as after start.
  virtual Result<bool> finish() = 0;
};

}  // namespace spark::staging
