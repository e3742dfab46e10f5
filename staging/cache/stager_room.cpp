// The space for a copy: what a staging asks for, and a prefetch reserves.
#include <unistd.h>

#include "staging/cache/stager.hpp"
#include "staging/files/space.hpp"

namespace spark::staging {

Result<Staged> Stager::reserve(const Source& source, Walked walked, const PartialArea& area,
                               const CopyOptions& options, const GenerationRow* earlier) {
  Resumed resumed = resume(area, walked.entries);
  if (const auto previous = earlier == nullptr ? std::nullopt : contents_of(*earlier))
    find_unchanged(*previous, area, walked.entries, resumed);
  const RoomRequest request = room_for(source, walked.entries, resumed, area, options);
  auto made = monitor_.during(CopyPhase::Walking, [&] { return make_room(store_, config_, request, stop_); });
  if (!made) return made.take_error();
  Staged reserved;
  reserved.dataset = source.dataset;
  reserved.evicted = std::move(made->evicted);
  reserved.is_reserved = true;
  return reserved;
}

RoomRequest Stager::room_for(const Source& source, const Entries& entries, const Resumed& resumed,
                             const PartialArea& area, const CopyOptions& options) {
  RoomRequest request;
  request.dataset = source.dataset;
  const Bytes block = block_of(store_.folder().path());
  request.whole = footprint_of(entries, block);
  request.need = need_of(entries, resumed, area);
  request.shared = shared_of(entries, resumed, block);
  request.keep_free = options.keep_free;
  request.answers_for = process_with(source.answers_for != 0 ? source.answers_for : ::getpid());
  request.task = source.task;
  request.in_use = source.in_use;
  request.is_prefetch = source.is_prefetch;
  request.prefetching = source.prefetching;
  request.timings = hooks_.room;
  request.say = [this](std::string reason) { monitor_.set_reason(std::move(reason)); };
  return request;
}

}  // namespace spark::staging
