#include "daemon/outputs/watch/checkpoint_plan.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "daemon/config/parse.hpp"
#include "staging/checkpoints/checkpoint_name.hpp"

namespace spark::outputs {
namespace {

bool is_kept_always(const config::Output& output, const Holdings& held, const std::string& name) {
  const auto step = staging::step_of(name);
  return (output.keep_every > 0 && step && *step % output.keep_every == 0) || name == held.best;
}

// Records of earlier versions have its newest change.
bool is_rewritten(const LocalCheckpoint& local, const Changes& sent) {
  const auto known = sent.find(local.name);
  return known != sent.end() && known->second != local.written && known->second != local.changed_ns;
}

template <class Checkpoint>
const Checkpoint* find_in(const std::vector<Checkpoint>& all, const std::string& name) {
  const auto found = std::ranges::find(all, name, &Checkpoint::name);
  return found == all.end() ? nullptr : &*found;
}

// The order of sending: one that other hosts wait for, one of this host alone, one that was sent already, and
// that may be joined now.
enum class Turn { AwaitedByOthers, New, Sent, Stuck, None };

Turn turn_of(const LocalCheckpoint& local, const std::vector<BegunCheckpoint>& begun) {
  const auto found = std::ranges::find(begun, local.name, &BegunCheckpoint::name);
  if (found == begun.end()) return Turn::New;
  if (has_sent(local, begun)) return found->is_stuck ? Turn::Stuck : Turn::Sent;
  return found->has_others ? Turn::AwaitedByOthers : Turn::New;
}

// The one on the volume that makes this one superfluous; null if there is none. Only a higher step does so,
// or, among those without one, a later time. Other hosts' clocks may be ahead: their times count only if this
// host has the same checkpoint, and never against one that they wait for.
const PublishedCheckpoint* overtaking(const LocalCheckpoint& one, Turn turn, const config::Output& output,
                                      const Holdings& held, const Changes& sent) {
  if (!held.published) return nullptr;
  const bool has_step = staging::step_of(one.name).has_value();
  const auto there = std::ranges::find_if(*held.published, [&](const PublishedCheckpoint& copy) {
    return staging::step_of(copy.name).has_value() == has_step;
  });
  if (there == held.published->end()) return nullptr;
  if (has_step) return staging::step_of(there->name) > staging::step_of(one.name) ? &*there : nullptr;
  const LocalCheckpoint* own = output.nodes > 1 ? find_in(held.local, there->name) : nullptr;
  const bool is_own_time = output.nodes <= 1 || (own != nullptr && !is_rewritten(*own, sent));
  if (!is_own_time && turn == Turn::AwaitedByOthers) return nullptr;
  return one.mtime_ns < (own != nullptr && is_own_time ? own->mtime_ns : there->mtime_ns) ? &*there : nullptr;
}

}  // namespace

std::string rule_of(const config::Output& output) {
  using config::Complete;
  return config::to_string(output.complete == Complete::OnRequest ? Complete::Rename : output.complete);
}

std::string path_on_volume(const config::Output& output, const std::string& name) {
  return output.to == "." ? name : output.to + "/" + name;
}

bool has_sent(const LocalCheckpoint& local, const std::vector<BegunCheckpoint>& begun) {
  const auto found = std::ranges::find(begun, local.name, &BegunCheckpoint::name);
  return found != begun.end() && found->own_written == local.written;
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
  std::array<std::uint32_t, 2> kept{};     // without a step, and with
  std::array<bool, 2> is_due{true, true};  // the same: all above are sent, and not completed by other hosts
  bool is_highest = true;
  for (const LocalCheckpoint& one : held.local) {
    if (!one.incomplete.empty()) continue;
    const bool has_step = staging::step_of(one.name).has_value();
    const bool is_newest = kept[has_step]++ == 0;
    const bool is_again = is_rewritten(one, sent);
    const bool is_known = held.published ? is_published(output, one, published) : sent.contains(one.name);
    const bool is_there = is_known && !is_again;
    // Another host has sent its own state of this step since: two hosts never replace each other's in turn.
    const bool is_replaced =
        !is_known && !is_again && sent.contains(one.name) && find_in(published, one.name);
    const Turn turn = turn_of(one, held.begun);
    const bool is_update = is_again && find_in(published, one.name) != nullptr;
    const PublishedCheckpoint* above = is_update ? nullptr : overtaking(one, turn, output, held, sent);
    const bool is_kept = is_kept_always(output, held, one.name);
    if (std::exchange(is_highest, false)) {
      plan.is_newest_pending = !is_known && !is_replaced && above == nullptr;
      if (above != nullptr && !is_there && !is_kept && !sent.contains(one.name))
        plan.overtaken_by = above->name;
    }
    // A checkpoint that waits behind the newest is superfluous as soon as the newest is published.
    const bool is_next = (is_due[has_step] || turn == Turn::AwaitedByOthers) && above == nullptr;
    is_due[has_step] = is_due[has_step] && turn == Turn::Stuck;
    if (!is_there && !is_replaced && (is_update || is_kept || is_next)) {
      plan.backlog += one.bytes;
      ++plan.waiting;
      // The lowest of those that are stuck: the higher ones lack a host.
      if (turn < turn_of_send || (turn == Turn::Stuck && turn_of_send == Turn::Stuck)) {
        plan.send = one;
        turn_of_send = turn;
      }
      continue;
    }
    if (!has_step || is_newest || output.keep_local == 0 || kept[true] <= output.keep_local) continue;
    if (one.name == held.best) continue;
    const PublishedCheckpoint* copy = is_there ? find_in(published, one.name) : above;
    if (copy != nullptr) plan.surplus.push_back({one.name, one.written, *copy});
  }
  return plan;
}

json::object changes_to_json(const Changes& changes) {
  json::object object;
  for (const auto& [name, changed] : changes) object[name] = changed;
  return object;
}

Changes changes_from_json(const json::object* object) {
  Changes changes;
  if (object == nullptr) return changes;
  for (const auto& member : *object) {
    if (const auto changed = get_int(*object, member.key())) changes[std::string(member.key())] = *changed;
  }
  return changes;
}

}  // namespace spark::outputs
