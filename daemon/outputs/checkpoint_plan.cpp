#include "daemon/outputs/checkpoint_plan.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace spark::outputs {
namespace {

bool is_kept_always(const config::Output& output, const std::string& name) {
  return output.keep_every > 0 && last_number_in(name) % output.keep_every == 0;
}

bool is_rewritten(const LocalCheckpoint& local, const Changes& sent) {
  const auto known = sent.find(local.name);
  return known != sent.end() && known->second != local.changed_ns;
}

// The order of sending: one that other hosts wait for, one of this host alone, one that was sent already.
enum class Turn { AwaitedByOthers, New, Sent, None };

Turn turn_of(const LocalCheckpoint& local, const std::vector<BegunCheckpoint>& begun) {
  const auto found = std::ranges::find(begun, local.name, &BegunCheckpoint::name);
  if (found == begun.end()) return Turn::New;
  if (has_sent(local, begun)) return Turn::Sent;
  return found->has_others ? Turn::AwaitedByOthers : Turn::New;
}

// Whether the newest checkpoint on the volume replaces an older one of this host.
class Superseding {
 public:
  // All outlive it.
  Superseding(const config::Output& output, const std::vector<LocalCheckpoint>& local,
              const std::vector<PublishedCheckpoint>& published, const Changes& sent)
      : newest_(published.empty() ? nullptr : &published.front()) {
    if (newest_ == nullptr) return;
    mtime_ns_ = newest_->mtime_ns;
    if (output.nodes <= 1) return;
    // The time on the volume is that of the host that finished last, by its clock.
    const auto own = std::ranges::find(local, newest_->name, &LocalCheckpoint::name);
    is_time_of_other_ = own == local.end() || is_rewritten(*own, sent);
    if (!is_time_of_other_) mtime_ns_ = own->mtime_ns;
  }

  // Other hosts' clocks may be ahead, so a later step is never replaced by their times alone, nor is one that
  // they wait for.
  bool replaces(const LocalCheckpoint& one, Turn turn) const {
    if (newest_ == nullptr || one.mtime_ns >= mtime_ns_) return false;
    if (!is_time_of_other_) return true;
    return turn != Turn::AwaitedByOthers && last_number_in(one.name) <= last_number_in(newest_->name);
  }

 private:
  const PublishedCheckpoint* newest_;  // null if there is none
  std::int64_t mtime_ns_ = 0;
  bool is_time_of_other_ = false;
};

std::string text_of(const json::object& object, std::string_view key) {
  return get_string(object, key).value_or("");
}

}  // namespace

std::string path_on_volume(const config::Output& output, const std::string& name) {
  return output.to == "." ? name : output.to + "/" + name;
}

bool has_sent(const LocalCheckpoint& local, const std::vector<BegunCheckpoint>& begun) {
  const auto found = std::ranges::find(begun, local.name, &BegunCheckpoint::name);
  return found != begun.end() && found->own_mtime_ns == local.mtime_ns;
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

CheckpointPlan plan_checkpoints(const config::Output& output, const std::vector<LocalCheckpoint>& local,
                                const std::vector<PublishedCheckpoint>& published, const Changes& sent,
                                const std::vector<BegunCheckpoint>& begun) {
  CheckpointPlan plan;
  Turn turn_of_send = Turn::None;
  const Superseding newest_there(output, local, published, sent);
  std::uint32_t kept = 0;
  for (const LocalCheckpoint& one : local) {
    if (!one.incomplete.empty()) continue;
    const bool is_again = is_rewritten(one, sent), is_newest = kept++ == 0;
    const bool is_there = is_published(output, one, published) && !is_again;
    const Turn turn = turn_of(one, begun);
    const bool is_superseded = newest_there.replaces(one, turn) && !is_again;
    if (is_newest) plan.is_newest_pending = !is_published(output, one, published) && !is_superseded;
    // A checkpoint that waits behind the newest is superseded as soon as the newest is published.
    const bool is_next = (is_newest || turn == Turn::AwaitedByOthers) && !is_superseded;
    const bool is_wanted = !is_there && (is_again || is_kept_always(output, one.name) || is_next);
    if (is_there && plan.latest.empty()) plan.latest = one.name;
    if (is_wanted) {
      plan.backlog += one.bytes;
      if (turn < turn_of_send) {
        plan.send = one;
        turn_of_send = turn;
      }
    }
    const bool is_surplus =
        output.keep_local > 0 && kept > output.keep_local && !is_newest && one.name != plan.latest;
    if (is_surplus && !is_wanted && (is_there || is_superseded)) plan.remove[one.name] = one.changed_ns;
  }
  return plan;
}

std::vector<LocalCheckpoint> local_from_json(const json::object& answer) {
  std::vector<LocalCheckpoint> all;
  const json::array* rows = get_array(answer, "checkpoints");
  for (std::size_t i = 0; rows != nullptr && i < rows->size(); ++i) {
    const json::object& row = (*rows)[i].as_object();
    all.push_back(
        {text_of(row, "name"), get_int(row, "mtime_ns").value_or(0), get_int(row, "changed_ns").value_or(0),
         static_cast<Bytes>(get_int(row, "bytes").value_or(0)), text_of(row, "incomplete"),
         get_bool(row, "is_settling").value_or(false), get_bool(row, "is_unproven").value_or(false)});
  }
  return all;
}

std::vector<PublishedCheckpoint> published_from_json(const json::object& answer) {
  std::vector<PublishedCheckpoint> all;
  const json::array* rows = get_array(answer, "copies");
  for (std::size_t i = 0; rows != nullptr && i < rows->size(); ++i) {
    const json::object& row = (*rows)[i].as_object();
    all.push_back({text_of(row, "name"), get_int(row, "mtime_ns").value_or(0)});
  }
  return all;
}

std::vector<BegunCheckpoint> begun_from_json(const json::object& answer) {
  std::vector<BegunCheckpoint> all;
  const json::array* rows = get_array(answer, "begun");
  for (std::size_t i = 0; rows != nullptr && i < rows->size(); ++i) {
    const json::object& row = (*rows)[i].as_object();
    all.push_back({text_of(row, "name"), get_int(row, "own_mtime_ns").value_or(0),
                   get_bool(row, "has_others").value_or(false), get_int(row, "others_progress").value_or(0)});
  }
  return all;
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
