// The resources of one thread of an exchange.
#pragma once

#include <atomic>

#include "fleet/fetch/run.hpp"
#include "fleet/protocol/unit_body.hpp"
#include "staging/files/io/direct_io.hpp"

namespace spark::fleet {

struct ExchangeRun::Lane {
  Lane(staging::CopyContext& context, staging::IoKind io, bool reads_direct)
      : context(context), buffer(kUnitBuffer), copier(context, io, staging::kFilesAtOnce, reads_direct) {}
  staging::CopyContext& context;
  staging::IoBuffer buffer;
  staging::SmallFileCopier copier;

  std::span<char> chars() const { return {reinterpret_cast<char*>(buffer.data()), buffer.size()}; }

  // Reads a piece of the source into the buffer, and adds its bytes to `bytes`.
  Result<staging::PieceOutcome> read_piece(staging::FileWork& work, std::uint64_t piece,
                                           std::atomic<Bytes>& bytes);
  // Writes the piece in the buffer to the copy, unless it ended early.
  Result<> write_piece(staging::FileWork& work, std::uint64_t piece, const staging::PieceOutcome& outcome);
};

}  // namespace spark::fleet
