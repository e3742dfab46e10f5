#include "staging/piece_reader.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>

namespace spark::staging {
namespace {

struct Stretch {
  Bytes begin, end;
};

// The next bytes in [from, end) that are not a hole, widened to the alignment; empty at `end` if there are
// none.
Stretch next_data(const Readable& file, Bytes from, Bytes end) {
  if (!file.is_sparse) return {from, end};
  const off_t data = ::lseek(file.fd.get(), static_cast<off_t>(from), SEEK_DATA);
  if (data < 0 && errno == ENXIO) return {end, end};  // a hole up to the end of the file
  if (data < 0) return {from, end};                   // not known here: all of it is read
  if (static_cast<Bytes>(data) >= end) return {end, end};
  const off_t hole = ::lseek(file.fd.get(), data, SEEK_HOLE);
  if (hole < 0) return {from, end};
  return {std::max(from, round_down(static_cast<Bytes>(data), file.mode.alignment)),
          std::min(end, round_up(static_cast<Bytes>(hole), file.mode.alignment))};
}

}  // namespace

Result<PieceOutcome> read_piece(const Readable& file, std::uint64_t index, IoBuffer& buffer,
                                const PieceVisitor& visitor) {
  const Bytes begin = index * kHashPiece;
  const Bytes end = std::min(file.size, begin + kHashPiece);
  Hasher hasher;
  for (Bytes at = begin; at < end;) {
    const Stretch data = next_data(file, at, end);
    if (data.begin > at) {
      hasher.add_zeros(data.begin - at);
      visitor.hole(data.begin - at);
    }
    for (at = data.begin; at < data.end;) {
      const std::size_t want = std::min<Bytes>(buffer.size(), data.end - at);
      if (auto go_on = visitor.before_read(at, want); !go_on) return tl::unexpected<Error>(go_on.error());
      const ReadOutcome read = read_at(file.fd.get(), file.mode, buffer.data(), want, at);
      if (read.error != 0) return fail_errno(read.error, "reading " + file.tree->shown(file.path));
      if (read.bytes < want) return PieceOutcome{{}, true};
      hasher.add(std::span<const std::byte>(buffer.data(), want));
      if (auto done = visitor.after_read(at, want); !done) return tl::unexpected<Error>(done.error());
      at += want;
    }
  }
  return PieceOutcome{hasher.digest(), false};
}

}  // namespace spark::staging
