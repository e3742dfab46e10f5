// Transfers packs of small files, and decides on peers that sent wrong bytes or nothing.
#include <algorithm>

#include "base/text.hpp"
#include "base/units.hpp"
#include "fleet/fetch/lane.hpp"
#include "fleet/fetch/run.hpp"
#include "fleet/fetch/timings.hpp"
#include "staging/files/io/direct_io.hpp"
#include "staging/manifest/units.hpp"

namespace spark::fleet {
// Called by the file's FileWork before the file is finished.
bool ExchangeRun::is_right(const staging::Entry& entry, const staging::Digest& digest) {
  const std::scoped_lock lock(mutex_);
  const auto found =
      std::ranges::find_if(open_, [&](const auto& one) { return one.second->entry == &entry; });
  if (found == open_.end()) return true;
  File& file = *found->second;
  if (file.doubt && file.doubt->right == digest) {
    for (const auto& [unit, one] : file.doubt->pieces) give_up_peer(one.peer, entry.path.view());
    file.doubt.reset();
  }
  if (!file.expected || *file.expected == digest) return true;
  if (!file.doubt) file.doubt = Doubt{*file.expected, {}};
  const auto is_blamed = [&](const auto& supplied) { return schedule_.peer(supplied.second.peer).is_blamed; };
  const bool is_known_why = !job_.context.has_source && std::ranges::any_of(file.supplied, is_blamed);
  for (const auto& [unit, one] : std::exchange(file.supplied, {})) {
    if (!is_known_why) schedule_.blame(one.peer, unit);
    file.doubt->pieces.emplace(unit, one);
  }
  return false;
}

// Requires mutex_.
void ExchangeRun::give_up_peer(std::size_t peer, std::string_view path) {
  if (!schedule_.blame(peer)) return;
  warnings_.push_back("peer " + exchange_.peers[peer]->name() + " sent wrong bytes of " + printable(path) +
                      "; nothing more was taken from it: verify its copy");
}

std::string warning_of_failing(const Peer& peer) {
  return "peer " + peer.name() + " answered, but sent none of the requested data for " +
         format_duration(kUndelivered) +
         "; it is asked again, and others meanwhile: look at that host's drive";
}

Result<> ExchangeRun::get_pack(const Choice& choice, Lane& lane) {
  const Pack& pack = exchange_.layout.pack(choice.unit);
  if (auto go_on = may_read(choice, "", 0, choice.peer ? pack.bytes : 0); !go_on) return go_on;
  Result<> done;
  Fetched fetched = Fetched::Whole;
  if (choice.peer) {
    const auto got = pack_from_peer(choice, lane);
    if (!got) return got.take_error();
    fetched = *got;
  } else {
    done = pack_from_source(choice, lane);
  }
  if (!done) return done;
  // Before it is done: its readers are to find it here.
  if (fetched == Fetched::Whole) exchange_.board.set_unit(choice.unit, UnitState::HasPiece);
  {
    const std::scoped_lock lock(mutex_);
    if (fetched == Fetched::Whole) {
      schedule_.done(choice, std::chrono::steady_clock::now());
    } else {
      const bool is_missing = fetched == Fetched::Missing;
      if (schedule_.failed(choice, is_missing, std::chrono::steady_clock::now()))
        warnings_.push_back(warning_of_failing(*exchange_.peers[*choice.peer]));
    }
  }
  changed_.notify_all();
  return {};
}

// What readers wait for goes first. They may come to wait for more at any time, so the rest is copied in
// parts.
Result<> ExchangeRun::pack_from_source(const Choice& choice, Lane& lane) {
  const Pack& pack = exchange_.layout.pack(choice.unit);
  const auto entry_of = [&](std::uint64_t small) {
    return exchange_.entry_of[exchange_.layout.small(small)];
  };
  std::vector<std::uint64_t> needed;
  for (std::uint64_t i = pack.first; i < pack.first + pack.count; ++i)
    if (backlog_.needs(i)) needed.push_back(i);
  for (std::span<std::uint64_t> rest = needed; !rest.empty();) {
    take_wanted();
    std::size_t wanted = 0;
    {
      const std::scoped_lock lock(mutex_);
      wanted = backlog_.put_wanted_first(rest);
    }
    const bool in_parts = backlog_.has_readers();
    const std::size_t most = !in_parts ? rest.size() : wanted > 0 ? wanted : staging::kFilesAtOnce;
    std::vector<staging::Entry*> part;
    Bytes bytes = 0;
    for (const std::uint64_t small : rest.first(std::min(rest.size(), most))) {
      if (in_parts && bytes >= staging::kViewUnit) break;
      part.push_back(entry_of(small));
      bytes += part.back()->size;
    }
    if (in_parts) {
      const auto is_urgent = [&] { return wanted > 0; };
      if (auto go_on = job_.context.may_read("", 0, bytes, is_urgent); !go_on) return go_on;
    }
    std::set<const staging::Entry*> left;
    const auto leave = [&](staging::Entry* entry) { left.insert(entry); };
    if (auto copied = lane.copier.copy(part, leave, in_parts); !copied) return copied;
    const std::scoped_lock lock(mutex_);
    for (const std::uint64_t small : rest.first(part.size())) {
      staging::Entry* entry = entry_of(small);
      backlog_.got(small);
      if (left.contains(entry)) {
        backlog_.left().add(entry);
      } else {
        exchange_.read_for(choice.why) += entry->size;
        exchange_.board.set_small_digest(small, entry->hash);
      }
    }
    rest = rest.subspan(part.size());
  }
  return {};
}

// Correct files of a unit that must be fetched again have been written by then and are no longer needed.
Result<ExchangeRun::Fetched> ExchangeRun::pack_from_peer(const Choice& choice, Lane& lane) {
  const Pack& pack = exchange_.layout.pack(choice.unit);
  PeerRequest request{PeerRequest::Kind::Unit, exchange_.set, choice.unit, 0};
  const auto began = std::chrono::steady_clock::now();
  const auto head = exchange_.peers[*choice.peer]->get(request, lane.chars(), kForUnit);
  job_.context.counters->spent(staging::Activity::Peers, std::chrono::steady_clock::now() - began);
  if (!head) return Fetched::NotNow;
  if (head->status != 200 || head->length < pack.count * kTableEntry) return Fetched::Missing;
  const std::byte* const end = lane.buffer.data() + head->length;
  const std::byte* content = lane.buffer.data() + pack.count * kTableEntry;
  std::vector<staging::Entry*> left;
  // Equal sizes and times do not show that this host's file has no attributes either.
  const auto is_plain_here = [&](const staging::Entry& entry) {
    return exchange_.has_state || !job_.context.has_source || lane.copier.is_plain_at_source(entry);
  };
  for (std::uint64_t i = 0; i < pack.count; ++i) {
    const std::byte* row = lane.buffer.data() + i * kTableEntry;
    staging::Entry* entry = exchange_.entry_of[exchange_.layout.small(pack.first + i)];
    if (row[0] == std::byte{0}) {
      if (backlog_.needs(pack.first + i)) left.push_back(entry);
      continue;
    }
    if (static_cast<Bytes>(end - content) < entry->size) return Fetched::Missing;
    const std::byte* const mine = content;
    content += entry->size;
    if (!backlog_.needs(pack.first + i)) continue;
    if (!is_plain_here(*entry)) {
      left.push_back(entry);
      continue;
    }
    const staging::Digest digest = exchange_.known.empty()
                                       ? get_digest(row + 1)
                                       : exchange_.known[exchange_.layout.small(pack.first + i)];
    if (staging::digest_of(std::span(mine, entry->size)) != digest) {
      const std::scoped_lock lock(mutex_);
      give_up_peer(*choice.peer, entry->path.view());
      return Fetched::Missing;
    }
    if (auto written = lane.copier.write(*entry, mine); !written) return written.take_error();
    job_.context.counters->bytes_from_peers += entry->size;
    exchange_.board.set_small_digest(pack.first + i, digest);
    const std::scoped_lock lock(mutex_);
    backlog_.got(pack.first + i);
  }
  const std::scoped_lock lock(mutex_);
  for (staging::Entry* entry : left) backlog_.left().add(entry);
  return Fetched::Whole;
}

void ExchangeRun::fail_run(Error error) {
  {
    const std::scoped_lock lock(mutex_);
    if (!error_) error_ = std::move(error);
    job_.context.end->fail();
  }
  end();
}

}  // namespace spark::fleet
