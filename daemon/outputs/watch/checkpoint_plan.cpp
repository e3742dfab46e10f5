#include "daemon/outputs/watch/checkpoint_plan.hpp"

#include <algorithm>
#include <utility>

#include "daemon/config/parse.hpp"
#include "staging/checkpoints/checkpoint_name.hpp"

namespace spark::outputs {
namespace {

bool is_kept_always(const config::Output& output, const Holdings& held, const std::string& name) {
  const auto step = staging::step_of(name);
  return (output.keep_every > 0 && step && *step % output.keep_every == 0) || name == held.best;
}

bool is_rewritten(const LocalCheckpoint& local, const Changes& sent) {
  const auto known = sent.find(local.name);
  return known != sent.end() && known->second != local.written;
}

// The order of sending: one that other hosts wait for, one of this host alone, one that was sent already, and
// that may be joined now.
enum class Turn { AwaitedByOthers, New, Sent, Stuck, None };

Turn turn_of(const LocalCheckpoint& local, const std::vector<BegunCheckpoint>& begun) {
  const BegunCheckpoint* found = find_named(begun, local.name);
  if (found == nullptr) return Turn::New;
  if (has_sent(local, begun)) return found->is_stuck ? Turn::Stuck : Turn::Sent;
  return found->has_others ? Turn::AwaitedByOthers : Turn::New;
}

bool has_step(const LocalCheckpoint& one) {
  return !one.newer_than && staging::step_of(one.name).has_value();
}

// The local checkpoint with the times of this host's clock, if there is one: other hosts' may be ahead.
const LocalCheckpoint* own_of(const PublishedCheckpoint& copy, const config::Output& output,
                              const Holdings& held, const Changes& sent) {
  const LocalCheckpoint* own = find_named(held.local, copy.name);
  const bool is_same = own != nullptr && !is_rewritten(*own, sent) && is_published(output, *own, {copy});
  return is_same ? own : nullptr;
}

// The one on the volume that makes this one superfluous; null if there is none. Only one of its series does:
// a higher step, or, among those without one, a later time. Other hosts' times count only if this host has
// the same checkpoint, and never against one that they wait for.
const PublishedCheckpoint* overtaking(const LocalCheckpoint& one, Turn turn, const config::Output& output,
                                      const Holdings& held, const Changes& sent) {
  if (!held.published || held.published->empty()) return nullptr;
  const PublishedCheckpoint& highest = held.published->front();
  if (one.newer_than && staging::standing_of(highest) > staging::standing_of(one)) return &highest;
  const auto there = std::ranges::find_if(*held.published, [&](const PublishedCheckpoint& copy) {
    return staging::form_of(copy.name) == staging::form_of(one.name);
  });
  if (there == held.published->end()) return nullptr;
  if (has_step(one)) return staging::step_of(there->name) > staging::step_of(one.name) ? &*there : nullptr;
  const LocalCheckpoint* own = own_of(*there, output, held, sent);
  const bool is_own_time = output.nodes <= 1 || own != nullptr;
  if (!is_own_time && turn == Turn::AwaitedByOthers) return nullptr;
  const std::int64_t time = own != nullptr ? staging::time_of(*own) : staging::time_of(*there);
  return staging::time_of(one) < time ? &*there : nullptr;
}

// Whether the job went back to an earlier step, and has saved this one since. If this one was sent, and
// `keep` deleted it, only times of this host's clock say so; of several hosts, none if this one no longer has
// the other.
std::optional<bool> is_after(const LocalCheckpoint& one, const PublishedCheckpoint& above,
                             const config::Output& output, const Holdings& held, const Changes& sent) {
  const LocalCheckpoint* own = own_of(above, output, held, sent);
  const bool was_sent = sent.contains(one.name) && !is_rewritten(one, sent);
  if (own == nullptr && was_sent) return false;
  if (own == nullptr && output.nodes > 1) return std::nullopt;
  // A job that overwrites files does not change the modification time of their folder.
  const std::int64_t saved_ns = one.proof_ns != 0 ? one.proof_ns : std::max(one.mtime_ns, one.modified_ns);
  return saved_ns > (own != nullptr ? staging::time_of(*own) : staging::time_of(above));
}

// Checkpoints of one form (staging::form_of), the highest first.
struct Series {
  std::string save;        // of the last one: staging::save_of
  std::uint32_t kept = 0;  // saves
  bool is_due = true;      // all above are sent, and not completed by other hosts
  bool are_stuck = true;   // the same, with this one

  void add(const LocalCheckpoint& one, Turn turn) {
    std::string its_save = staging::save_of(one.name);
    if (kept == 0 || its_save != save) {
      ++kept;
      is_due = are_stuck;
    }
    save = std::move(its_save);
    are_stuck = are_stuck && turn == Turn::Stuck;
  }
};

}  // namespace

std::string rule_of(const config::Output& output) {
  using config::Complete;
  const auto rule = output.complete == Complete::OnRequest ? Complete::Rename : output.complete;
  return config::to_string(rule) + (rule == Complete::Marker ? ":" + output.marker : "");
}

std::string path_on_volume(const config::Output& output, const std::string& name) {
  return output.to == "." ? name : output.to + "/" + name;
}

bool has_sent(const LocalCheckpoint& local, const std::vector<BegunCheckpoint>& begun) {
  const BegunCheckpoint* found = find_named(begun, local.name);
  return found != nullptr && found->own_written == local.written;
}

const LocalCheckpoint* newest_complete(const std::vector<LocalCheckpoint>& local) {
  const auto found = std::ranges::find_if(local, [](const auto& one) { return one.incomplete.empty(); });
  return found == local.end() ? nullptr : &*found;
}

bool is_published(const config::Output& output, const LocalCheckpoint& local,
                  const std::vector<PublishedCheckpoint>& published) {
  return std::ranges::any_of(published, [&](const PublishedCheckpoint& one) {
    return one.name == local.name && (output.nodes > 1 || one.mtime_ns == local.mtime_ns);
  });
}

CheckpointPlan plan_checkpoints(const config::Output& output, const Holdings& held, const Changes& sent) {
  static const std::vector<PublishedCheckpoint> kNone;
  const std::vector<PublishedCheckpoint>& published = held.published ? *held.published : kNone;
  CheckpointPlan plan;
  Turn turn_of_send = Turn::None;
  std::map<std::string, Series> all;  // by form
  bool is_highest = true;
  const LocalCheckpoint* newest = newest_complete(held.local);
  for (const LocalCheckpoint& one : held.local) {
    if (!one.incomplete.empty()) continue;
    const bool is_again = is_rewritten(one, sent);
    const bool is_known = held.published ? is_published(output, one, published) : sent.contains(one.name);
    const bool is_there = is_known && !is_again;
    // Another host has sent its own state of this step since: two hosts never replace each other's in turn.
    const bool is_replaced =
        !is_known && !is_again && sent.contains(one.name) && find_named(published, one.name);
    const Turn turn = turn_of(one, held.begun);
    Series& series = all[staging::form_of(one.name)];
    series.add(one, turn);
    const bool is_update = is_again && find_named(published, one.name) != nullptr;
    const PublishedCheckpoint* above = is_update ? nullptr : overtaking(one, turn, output, held, sent);
    const bool is_kept = is_kept_always(output, held, one.name);
    const bool was_sent = sent.contains(one.name) && !is_again;
    const auto after = above == nullptr ? std::optional(false) : is_after(one, *above, output, held, sent);
    const bool is_back =
        above != nullptr && !is_there && !is_kept && ((is_highest && !was_sent) || after == true);
    if (is_back && plan.overtaken.empty()) {
      plan.overtaken = one.name;
      plan.overtaken_by = above->name;
    }
    if (std::exchange(is_highest, false))
      plan.is_newest_pending = !is_known && !is_replaced && above == nullptr;
    plan.may_publish =
        plan.may_publish || (!is_there && !is_replaced && above == nullptr && turn != Turn::Stuck &&
                             staging::form_of(one.name) == staging::form_of(newest->name));
    // A checkpoint that waits behind the newest is superfluous as soon as the newest is published.
    const bool is_next = (series.is_due || turn == Turn::AwaitedByOthers) && above == nullptr;
    if (!is_there && !is_replaced && (is_update || is_kept || is_next)) {
      plan.backlog += one.bytes;
      ++plan.waiting;
      if (turn == Turn::AwaitedByOthers) plan.awaited.push_back(one.name);
      // The lowest of those that are stuck: the higher ones lack a host.
      if (turn < turn_of_send || (turn == Turn::Stuck && turn_of_send == Turn::Stuck)) {
        plan.send = one;
        turn_of_send = turn;
      }
      continue;
    }
    if (!has_step(one) || series.kept <= std::max(output.keep_local, 1U) || output.keep_local == 0) continue;
    if (one.name == held.best || is_back || (!is_there && !after)) continue;
    const PublishedCheckpoint* copy = is_there ? find_named(published, one.name) : above;
    if (copy != nullptr) plan.surplus.push_back({one.name, one.written, *copy});
  }
  // Of several hosts, nothing else tells when the lower one was saved.
  if (output.nodes > 1) std::erase_if(plan.surplus, [&](auto& one) { return one.name == plan.overtaken_by; });
  return plan;
}

}  // namespace spark::outputs
