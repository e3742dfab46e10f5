#include "fleet/fetch/lane.hpp"

namespace spark::fleet {

using Clock = std::chrono::steady_clock;

Result<staging::PieceOutcome> ExchangeRun::Lane::read_piece(staging::FileWork& work, std::uint64_t piece,
                                                            std::atomic<Bytes>& bytes) {
  const staging::OpenedFile& source = work.files().source;
  const Bytes offset = piece * staging::kHashPiece;
  const std::size_t want = staging::piece_bytes(source.size, piece);
  const auto began = Clock::now();
  const auto read = staging::read_at(source.fd.get(), source.mode, buffer.data(), want, offset);
  if (!source.mode.direct) staging::drop_pages(source.fd.get(), offset, read.bytes);
  if (read.error != 0) return source.tree->failed(read.error, "reading", source.path);
  context.counters->spent(staging::Activity::Source, Clock::now() - began);
  bytes += read.bytes;
  staging::PieceOutcome outcome;
  outcome.ended_early = read.bytes < want;
  outcome.digest = staging::digest_of(std::span(buffer.data(), read.bytes));
  return outcome;
}

Result<> ExchangeRun::Lane::write_piece(staging::FileWork& work, std::uint64_t piece,
                                        const staging::PieceOutcome& outcome) {
  const auto [source, copy] = work.files();
  const Bytes offset = piece * staging::kHashPiece;
  const std::size_t bytes = staging::piece_bytes(source.size, piece);
  const auto began = Clock::now();
  int failed = 0;
  if (!outcome.ended_early)
    failed = staging::write_at(copy->fd.get(), copy->mode, buffer.data(), bytes, offset);
  if (failed == 0 && !copy->mode.direct) failed = staging::write_back_and_drop(copy->fd.get(), offset, bytes);
  if (failed != 0) return fail_errno(failed, "writing " + copy->tree->shown(copy->path));
  context.counters->spent(staging::Activity::LocalDrive, Clock::now() - began);
  work.moved(bytes);
  return {};
}

}  // namespace spark::fleet
