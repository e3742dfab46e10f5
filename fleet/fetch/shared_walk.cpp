#include "fleet/fetch/shared_walk.hpp"

#include <algorithm>

#include "base/file.hpp"
#include "base/threads.hpp"
#include "fleet/fetch/peer_entries.hpp"
#include "fleet/fetch/timings.hpp"

namespace spark::fleet {
namespace {

constexpr std::chrono::milliseconds kLookingAtFolders{30'000};
// Enough for a walk of some million files; a host that needs longer is no longer waited for.
constexpr std::chrono::milliseconds kLongestWalk{60'000};
constexpr Bytes kMostEntries = 4 * kGiB, kMostNotes = 16 * kMiB;
constexpr std::uint64_t kTheWalk = 0;  // the only unit

}  // namespace

Result<staging::Walked> SharedWalk::get(const staging::Exchange::Walk& own) {
  auto board = Board::create(boards_, walk_, "", {1, 0, 0});
  if (!board) return own();  // another worker of this host stages it, or there is no space for a file
  (*board)->set_reads(reads_);
  presence_ = std::make_unique<Presence>(std::move(*board));
  schedule_ = std::make_unique<Schedule>(self_, peers_.size(), 1, kLongestWalk);
  // Without its volume this host also comes last, but its own attempt ends the wait if no other host is left:
  // the attempt fails with the reason.
  schedule_->reads_as(std::min(reads_, SetState::Reads::Slowly), std::chrono::steady_clock::now());
  awaited_ = static_cast<std::size_t>(
      std::ranges::count_if(peers_, [](const auto& peer) { return !peer->is_silent(); }));
  const std::uint64_t units[] = {kTheWalk};
  schedule_->add(units);
  Result<staging::Walked> walked = fail(Errc::Failed, "walking: out of memory");
  const auto part = [&](std::size_t number) {
    if (number > 0) return watch(number - 1);
    walked = no_throw([&] { return decide(own); });
    const std::scoped_lock lock(mutex_);
    end();
  };
  const auto ran = run_in_threads(peers_.size() + 1, part, [this] { end(); });
  if (!ran) return own();
  return walked;
}

// Ends the watches.
void SharedWalk::end() {
  is_over_ = true;
  over_.set();
  changed_.notify_all();
}

void SharedWalk::watch(std::size_t index) {
  const PeerRequest request{PeerRequest::Kind::Walk, walk_, 0, self_};
  for (bool is_first = true; !is_over_; is_first = false) {
    const auto text = peers_[index]->get_text(request, kMostNotes, for_state(kSilent), &over_);
    auto state = text ? parse_set_state(*text, 1) : text.take_error();
    std::unique_lock lock(mutex_);
    const auto now = std::chrono::steady_clock::now();
    if (state) {
      schedule_->heard(index, std::move(*state), now);
    } else {
      schedule_->unheard(index, now);
    }
    if (is_first && !peers_[index]->is_silent()) --awaited_;
    changed_.notify_all();
    changed_.wait_for(lock, kLookEvery, [this] { return is_over_.load(); });
  }
}

Result<staging::Walked> SharedWalk::decide(const staging::Exchange::Walk& own) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kFirstLook, [this] { return awaited_ == 0; });
  }
  for (;;) {
    const auto choice = next();
    if (!choice) {
      if (is_over_) return own();  // a watch has thrown: no peer is heard any more
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, kLookEvery);
      continue;
    }
    auto walked = choice->peer ? from_peer(*choice->peer) : own();
    if (walked && !choice->peer) offer(*walked);
    if (walked && presence_) presence_->board().set_unit(kTheWalk, UnitState::HasFile);
    if (walked || !choice->peer) return walked;
    const std::scoped_lock lock(mutex_);
    schedule_->failed(*choice, true, std::chrono::steady_clock::now());
    schedule_->blame(*choice->peer);  // otherwise it is waited for as the walk's owner while it stages
  }
}

// As in ExchangeRun::next(): claims a local walk on the board first, then checks again.
std::optional<Choice> SharedWalk::next() {
  const std::scoped_lock lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  schedule_->asked_by(presence_->board().members(), now);
  const auto choice = schedule_->next(From::Peers, now);
  if (!choice || choice->peer) return choice;
  presence_->board().set_unit(kTheWalk, UnitState::Reading);
  schedule_->asked_by(presence_->board().members(), now);
  if (schedule_->is_still_mine(*choice, now)) return choice;
  presence_->board().set_unit(kTheWalk, UnitState::Absent);
  schedule_->failed(*choice, false, now);
  return std::nullopt;
}

Result<staging::Walked> SharedWalk::from_peer(std::size_t index) {
  Peer& peer = *peers_[index];
  const auto path = Board::entries_of(boards_, walk_);
  const auto got = peer.get_file({PeerRequest::Kind::WalkEntries, walk_, 0, 0}, path, kMostEntries, kForWalk);
  if (!got) return got.take_error();
  if (reads_ == SetState::Reads::Never) {  // folder attributes are not available here
    const auto folders = peer.get_text({PeerRequest::Kind::WalkFolders, walk_, 0, 0}, kMostNotes,
                                       for_state(kLookingAtFolders));
    if (!folders) return folders.take_error();
    if (*folders != "plain")
      return fail(Errc::Unavailable, "folders have attributes, which peers do not send");
  }
  const auto text = peer.get_text({PeerRequest::Kind::WalkNotes, walk_, 0, 0}, kMostNotes, kForWalk);
  if (!text) return text.take_error();
  auto notes = staging::parse_walk_notes(*text);
  if (!notes) return fail(Errc::Invalid, "peer " + peer.name() + " sent no notes of its walk");
  auto list = read_peer_entries(path, peer.name());
  if (!list) return list.take_error();
  staging::Walked walked;
  static_cast<staging::WalkNotes&>(walked) = std::move(*notes);
  walked.entries = std::move(list->entries);
  for (staging::Entry& entry : walked.entries) {
    entry.hash = {};  // this and the next fields belong to the peer's copy
    entry.good_at = 0;
    entry.lost_attributes = false;
  }
  if (auto kept = write_file_atomically(Board::notes_of(boards_, walk_), *text); !kept)
    return kept.take_error();
  return walked;
}

// Publishes the walk on the board. If that fails, peers walk the volume themselves.
void SharedWalk::offer(const staging::Walked& walked) {
  const auto written = staging::write_entries(Board::entries_of(boards_, walk_), {}, walked.entries);
  const auto noted = write_file_atomically(Board::notes_of(boards_, walk_), staging::to_text(walked));
  if (!written || !noted) presence_.reset();
}

}  // namespace spark::fleet
