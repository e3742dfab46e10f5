#include "fleet/fetch/run.hpp"

#include <algorithm>
#include <limits>
#include <thread>
#include <utility>

#include "base/text.hpp"
#include "base/threads.hpp"
#include "fleet/fetch/lane.hpp"
#include "fleet/fetch/timings.hpp"
#include "staging/copy/copy_files.hpp"
#include "staging/copy/transfer/small_files.hpp"

namespace spark::fleet {
namespace {

constexpr std::chrono::milliseconds kLookAtSilent{1000};
constexpr std::chrono::milliseconds kLookAtReaders{10};
constexpr unsigned kMostLanes = 12, kFewestLanes = 4;
// Besides the others, which may all be waiting for slow peers. One of them gets units alone: large files that
// are not exchanged take long.
constexpr unsigned kLanesForReaders = 2;
constexpr int kFewHosts = 8;
// Wishes at a time, and thus under the mutex: readers ask again for what they wait for.
constexpr int kMostWishes = 64;
constexpr unsigned kAtOnceOfFew = 4, kAtOnceOfMany = 2;

// Each of many hosts looks at each other one less often.
std::chrono::milliseconds look_every(std::size_t peers) {
  return std::max(kLookEvery, kLookEvery * static_cast<int>(peers) / kFewHosts);
}

unsigned lanes() {
  return std::clamp(2 * std::thread::hardware_concurrency(), kFewestLanes, kMostLanes);
}

// Peers that send other bytes than the set is named by will not send the right ones later.
Error not_sent(bool is_wrong, std::string hint) {
  if (is_wrong)
    return {Errc::Mismatch, "no peer sends the content that the copy is named by", std::move(hint)};
  if (hint.empty()) hint = "files with extended attributes or ACLs are not sent";
  return {Errc::Unavailable, "no peer sends all of it", std::move(hint)};
}

// Where a peer has published the set.
void spread(Backlog& backlog, const Schedule& schedule, const ExchangeContext& exchange) {
  bool is_published = false;
  std::vector<NodeId> others;
  for (std::size_t peer = 0; peer < exchange.peers.size(); ++peer) {
    const SetState& state = schedule.peer(peer).state;
    const bool has_all = state.kind == SetState::Kind::Published;
    is_published = is_published || has_all;
    if (!has_all && state.node != 0) others.push_back(state.node);
  }
  if (is_published) backlog.spread(exchange.self, others);
}

}  // namespace

ExchangeRun::ExchangeRun(const ExchangeContext& exchange, staging::ExchangeJob& job)
    : exchange_(exchange),
      job_(job),
      schedule_(exchange.self, exchange.peers.size(),
                exchange.peers.size() < kFewHosts ? kAtOnceOfFew : kAtOnceOfMany),
      backlog_(job, exchange.layout, exchange.entry_of),
      watches_(static_cast<std::size_t>(
          std::ranges::count_if(exchange.peers, [](const auto& peer) { return !peer->is_silent(); }))) {}

Result<> ExchangeRun::go() {
  schedule_.reads_as(exchange_.reads, std::chrono::steady_clock::now());
  job_.context.is_right = [this](const staging::Entry& entry, const staging::Digest& digest) {
    return is_right(entry, digest);
  };
  job_.context.moved = [this](Bytes bytes) { limit_.moved(bytes, std::chrono::steady_clock::now()); };
  const std::size_t watches = exchange_.peers.size();
  const auto part = [&](std::size_t number) {
    if (number > 0 && number <= watches) return watch(number - 1);
    work(number == 0 ? 0 : number - watches);
  };
  const auto ran =
      run_in_threads(watches + lanes() + (backlog_.has_readers() ? kLanesForReaders : 0), part, [this] {
        fail_run({Errc::Failed, "exchanging with peers: out of memory", ""});
      });
  job_.context.is_right = nullptr;
  job_.context.moved = nullptr;
  if (!ran) return fail_with(ran.error(), "exchanging with peers");
  if (error_) return fail(std::move(*error_));
  if (auto go_on = job_.context.check_stop(); !go_on) return go_on;
  if (!open_.empty())
    return fail(Errc::Failed, "exchanging with peers: " +
                                  printable(open_.begin()->second->entry->path.view()) + " was not finished");
  job_.large = backlog_.left().take_rest();
  return {};
}

void ExchangeRun::watch(std::size_t index) {
  Peer& peer = *exchange_.peers[index];
  const PeerRequest request{PeerRequest::Kind::Set, exchange_.set, 0, exchange_.self};
  const auto every = look_every(exchange_.peers.size());
  auto asked_at = std::chrono::steady_clock::now();  // for the first time since the last answer
  // Hosts with a source begin all files in the same order, as each reads a share of each.
  bool is_to_spread = exchange_.reads == SetState::Reads::Never;
  for (bool is_first = true; !watches_.has_ended(); is_first = false) {
    std::chrono::milliseconds patience{};
    {
      const std::scoped_lock lock(mutex_);
      patience = watches_.patience();
    }
    const auto text = peer.get_text(request, kMostState, for_state(patience), &watches_.interrupt());
    auto state = text ? parse_set_state(*text, exchange_.layout.units()) : text.take_error();
    const auto now = std::chrono::steady_clock::now();
    std::unique_lock lock(mutex_);
    if (state) {
      watches_.answered(now - asked_at, now);
      schedule_.heard(index, std::move(*state), now);
      if (std::exchange(is_to_spread, false)) spread(backlog_, schedule_, exchange_);
    } else {
      schedule_.unheard(index, now);
    }
    if (is_first && !peer.is_silent()) watches_.first_ended();
    changed_.notify_all();
    watches_.pause(lock, text ? every : kLookAtSilent);
    if (state) asked_at = std::chrono::steady_clock::now();
  }
}

void ExchangeRun::work(std::size_t number) {
  Lane lane(job_.context, job_.io, staging::reads_directly(job_.context, {exchange_.entry_of.front()}));
  // A quarter of the lanes keeps the source busy whatever the peers do.
  const bool for_readers = number >= lanes();
  From first = number % 2 == 1 ? From::Peers : number % 4 == 0 ? From::Source : From::Balanced;
  if (for_readers) first = From::Wanted;
  if (!for_readers) {
    // The set of active peers decides which units this host reads first.
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kFirstLook, [&] { return watches_.has_ended() || !watches_.is_awaiting(); });
  }
  while (!job_.context.is_stopped()) {
    take_wanted();
    open_more(lane, for_readers);
    if (number != lanes())
      if (auto copied = backlog_.left().copy_wanted(&limit_); !copied) fail_run(std::move(copied.error()));
    const auto choice = next(first);
    if (!choice) {
      std::unique_lock lock(mutex_);
      if (schedule_.is_empty() && backlog_.is_empty() && !backlog_.left().is_copying()) break;
      changed_.wait_for(lock, for_readers ? kLookAtReaders : kLookAgain);
      continue;
    }
    const bool is_pack = exchange_.layout.is_pack(choice->unit);
    if (auto done = is_pack ? get_pack(*choice, lane) : get_piece(*choice, lane); !done)
      fail_run(std::move(done.error()));
  }
  if (auto released = lane.copier.release(); !released) fail_run(std::move(released.error()));
  end();
}

void ExchangeRun::end() {
  const std::scoped_lock lock(mutex_);
  watches_.end();
  changed_.notify_all();
}

// Claims a unit on the board before reading it from the source, then checks again. If a peer arrived at the
// same moment, either it sees the claim or this host sees the peer.
std::optional<Choice> ExchangeRun::next(From first) {
  const std::scoped_lock lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  const auto choice = schedule_.next(first, now);
  if (!choice && schedule_.is_hopeless(now)) {
    std::string hint;
    bool is_wrong = false;
    for (std::size_t peer = 0; peer < exchange_.peers.size(); ++peer) {
      const bool is_doubted = std::ranges::any_of(open_, [&](const auto& open) {
        const auto& doubt = open.second->doubt;
        return doubt &&
               std::ranges::any_of(doubt->pieces, [&](const auto& one) { return one.second.peer == peer; });
      });
      is_wrong = is_wrong || is_doubted || schedule_.peer(peer).is_blamed;
      if (is_doubted)
        hint += (hint.empty() ? "wrong bytes came; run `spark-stage verify NAME` on " : " and on ") +
                printable(exchange_.peers[peer]->name());
    }
    if (!hint.empty()) hint += ", which withdraws what is damaged";
    error_ = exchange_.known.empty()
                 ? Error{Errc::Unavailable, "its volume is away, and no peer has all of it", hint}
                 : not_sent(is_wrong, hint.empty() ? join(warnings_, "; ") : std::move(hint));
    job_.context.end->fail();
  }
  if (!choice || choice->peer) return choice;
  exchange_.board.set_unit(choice->unit, UnitState::Reading);
  if (choice->why == Why::Wanted) return choice;
  schedule_.asked_by(exchange_.board.members(), now);
  if (schedule_.is_still_mine(*choice, now)) return choice;
  exchange_.board.set_unit(choice->unit, UnitState::Absent);
  schedule_.failed(*choice, false, now);
  return std::nullopt;
}

void ExchangeRun::open_more(Lane& lane, bool for_readers) {
  std::unique_lock lock(mutex_);
  const auto busy = [this] { return Backlog::Busy{schedule_.waiting().size(), open_.size()}; };
  while (const auto index = backlog_.take_file(busy(), for_readers)) {
    auto file = std::make_shared<File>();
    lock.unlock();
    file->entry = exchange_.entry_of[*index];
    file->first_unit = exchange_.layout.first_unit_of(*index);
    file->units = staging::piece_count(file->entry->size);
    if (!exchange_.known.empty() && file->units > 1) file->expected = exchange_.known[*index];
    const staging::Entry walked = *file->entry;
    file->work = staging::work_for(job_.context, *file->entry, job_.resumed, job_.entries);
    Result<> started = file->work->start();
    // The file changed after the walk, so the peers' data belongs to another state.
    if (started && !staging::is_same_source(walked, *file->entry)) file->only_from_source = true;
    lock.lock();
    open_[*index] = file;
    backlog_.opened();
    changed_.notify_all();
    lock.unlock();
    if (started) started = offer(file, lane);
    if (!started) fail_run(std::move(started.error()));
    lock.lock();
    backlog_.offered();
    changed_.notify_all();
  }
  if (for_readers) return;
  const std::vector<std::uint64_t> packs = backlog_.take_packs(busy());
  schedule_.add(packs);
  if (!packs.empty()) changed_.notify_all();
}

// What readers of a live view wait for.
void ExchangeRun::take_wanted() {
  const std::scoped_lock lock(mutex_);
  for (int i = 0; i < kMostWishes; ++i) {
    const auto wanted = backlog_.take_wanted();
    if (!wanted) break;
    const bool is_here = exchange_.board.unit(wanted->unit) == UnitState::HasPiece;
    const auto open = open_.find(wanted->file);
    if (open == open_.end() ? !backlog_.bring_forward(*wanted, is_here) : is_here) continue;
    if (open != open_.end() && job_.context.has_source) prove(*open->second, wanted->unit);
    if (backlog_.take_pack(wanted->unit)) schedule_.add(std::span(&wanted->unit, 1));
    schedule_.want(*wanted);
  }
  if (!backlog_.waits_for_room(open_.size())) return;
  // A file is open until all of it is here. The file with the fewest missing units makes room, also if
  // another host owns these.
  const Layout& layout = exchange_.layout;
  constexpr auto kNone = std::numeric_limits<std::uint64_t>::max();
  const auto left_with = [&](std::uint64_t unit) {
    const auto open = layout.is_pack(unit) ? open_.end() : open_.find(layout.piece(unit).file);
    return open == open_.end() ? kNone : open->second->unfinished.load();
  };
  const auto least = std::ranges::min_element(schedule_.waiting(), {}, left_with);
  if (least == schedule_.waiting().end() || left_with(*least) == kNone) return;
  const Piece piece = layout.piece(*least);
  const std::uint64_t first = *least - piece.piece, pieces = open_.at(piece.file)->units;
  schedule_.want({piece.file, *least, first + pieces, pieces > 1});
}

// Requires mutex_. A piece from a peer that vouches only for the whole file may not be read yet. The source's
// may, and replaces it.
void ExchangeRun::prove(File& file, std::uint64_t unit) {
  const auto supplied = file.supplied.find(unit);
  if (supplied == file.supplied.end() || !supplied->second.is_written) return;
  std::uint64_t unfinished = file.unfinished;
  while (unfinished != 0 && !file.unfinished.compare_exchange_weak(unfinished, unfinished + 1)) continue;
  if (unfinished == 0) return;  // its end is being looked at
  file.supplied.erase(supplied);
  // It is read twice.
  job_.context.counters->bytes_total += staging::piece_bytes(file.entry->size, unit - file.first_unit);
  schedule_.add(std::span(&unit, 1));
}

// Waits for the throttle, before others once a reader waits for the unit.
Result<> ExchangeRun::may_read(const Choice& choice, std::string_view path, Bytes offset, Bytes bytes) {
  return job_.context.may_read(path, offset, bytes, [&] {
    const std::scoped_lock lock(mutex_);
    return schedule_.is_wanted(choice.unit);
  });
}

}  // namespace spark::fleet
