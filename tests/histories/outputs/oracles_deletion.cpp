// What is deleted, here and on the volume.
#include <algorithm>
#include <array>
#include <set>

#include "tests/histories/outputs/oracles.hpp"

namespace spark::histories {
namespace {

bool is_multiple(std::uint64_t step, std::uint32_t every) {
  return every > 0 && step % every == 0;
}

// By the time of the entry itself.
std::string newest_of(const std::filesystem::path& folder, const Listing& listing) {
  std::string newest;
  std::filesystem::file_time_type last{};
  for (const auto& [name, content] : listing) {
    std::error_code error;
    const auto time = std::filesystem::last_write_time(folder / name, error);
    if (error || name == "latest" || (!newest.empty() && time <= last)) continue;
    newest = name;
    last = time;
  }
  return newest;
}

// Names that the daemon keeps for itself.
bool is_ours(const std::string& name) {
  return name == "latest";
}

}  // namespace

Oracles::Before Oracles::before(const Machine& machine) const {
  return {listing_of(machine.job_folder()), listing_of(scene_.published()),
          link_at(machine.job_folder() / "latest")};
}

// What is on the volume, and has happened, that a wrong order or a wrong notion of "complete" takes for more
// than it is: the most particular of it.
std::string Oracles::cause_of(const std::string& name) const {
  static constexpr std::array kParticular = {"damaged", "unfinished", "remnant", "incomplete",
                                             "export",  "temporary",  "beside",  "touched"};
  const Truth& truth = scene_.truth;
  const Listing there = listing_of(scene_.published());
  std::set<std::string> causes;
  for (const auto& [other, content] : there) {
    if (is_ours(other)) continue;
    if (!truth.is_checkpoint(other) || truth.is_complete(other, content)) {
      if (other != name) causes.insert(cause_between(other, name));
    } else if (truth.damaged.contains(other)) {
      causes.insert("damaged");
    } else if (was_marked_unfinished(other)) {
      causes.insert("unfinished");
    } else {
      causes.insert(truth.remnants.contains(other) ? "remnant" : "incomplete");
    }
  }
  for (const char* cause : kParticular) {
    if (causes.contains(cause)) return cause;
  }
  if (truth.last_clock_change != SteadyTime()) return "clock";
  if (truth.last_return != SteadyTime()) return "resumed";
  if (there.contains(name)) return "itself";
  return there.empty() ? "nothing-there" : "other";
}

std::string Oracles::cause_between(const std::string& newest, const std::string& name) const {
  const Truth& truth = scene_.truth;
  if (truth.exports.contains(newest)) return "export";
  if (truth.temporary.contains(newest)) return "temporary";
  if (!truth.is_checkpoint(newest)) return "beside";
  if (newest == name) return "itself";
  if (truth.step_of(newest) >= truth.step_of(name))
    return truth.last_clock_change != SteadyTime() ? "higher-clock" : "higher";
  if (truth.remnants.contains(newest)) return "remnant";
  if (truth.last_clock_change != SteadyTime()) return "clock";
  if (truth.touched.contains(newest)) return "touched";
  if (truth.last_return != SteadyTime()) return "resumed";
  return "other";
}

bool Oracles::was_marked_unfinished(const std::string& name) const {
  return scene_.truth.temporary.contains(name + "-unfinished");
}

void Oracles::after(const Machine& machine, const workers::Call& call, const Before& before,
                    const Result<json::object>& answer) {
  const Listing there = listing_of(scene_.published());
  if (call.verb == "tidy-output") {
    const Listing here = listing_of(machine.job_folder());
    check_deleted_here(machine, before, here, there);
    check_logged(before.here, here, machine.job_folder().native() + "/", ':');
    check_own_link(machine, before);
  }
  if (call.verb == "prune-output") check_logged(before.there, there, "", ' ');
  check_published(machine, call, before, there);
  check_deleted_there(before, there);
  // It warns if it could not move the pointer.
  const bool is_moved = answer && call.verb == "stage-out" && get_string(*answer, "state") == "ready" &&
                        !get_string(call.request, "rule").value_or("").empty() &&
                        get_strings(*answer, "warnings").empty();
  if (is_moved || call.verb == "prune-output") check_pointer(there, is_moved);
}

// Also while its deletion has not removed anything, or if no look can have seen it whole.
bool Oracles::seems_to_stand(const std::string& name, const Save& save, const Listing& here) const {
  if (save.state != Save::State::Discarded) return true;
  const auto left = here.find(name);
  const bool was_seen = save.changed - save.done >= Duration(10'000);
  return left != here.end() && (scene_.truth.is_complete(name, left->second) || !was_seen);
}

void Oracles::check_deleted_here(const Machine& machine, const Before& before, const Listing& here,
                                 const Listing& there) {
  const Truth& truth = scene_.truth;
  const Saves& saves = truth.here[machine.index];
  for (const auto& [name, content] : before.here) {
    const auto now = here.find(name);
    if (is_ours(name) || (now != here.end() && now->second == content)) continue;
    const std::string who = machine.name() + " deleted " + name + " in the job's folder";
    if (now != here.end())
      return scene_.broken("job-folder-changed",
                           machine.name() + " changed " + name + " in the job's folder");
    if (truth.beside.contains(name)) {
      scene_.noted("deleted-beside", who + ", which is no checkpoint");
      continue;
    }
    if (truth.numbered.contains(name)) {
      const auto sent = there.find(name);
      if (sent == there.end() || sent->second != content)
        return scene_.broken("deleted-numbered", who + ", which was never sent, and is no checkpoint");
      continue;
    }
    if (truth.temporary.contains(name)) {
      scene_.noted("deleted-temporary", who + ", which is not finished");
      continue;
    }
    const auto save = saves.find(name);
    if (save == saves.end() || save->second.state == Save::State::Discarded) continue;
    const bool is_torn = save->second.state == Save::State::Saving || save->second.state == Save::State::Torn;
    // A save that was interrupted before it changed anything has torn nothing.
    if (is_torn && !truth.is_complete(name, content))
      return scene_.broken(was_marked_unfinished(name) ? "deleted-unfinished" : "deleted-incomplete",
                           who + ", which is " + to_string(save->second.state));
    const auto copy = there.find(name);
    // Of several hosts, a complete one there may be of an earlier attempt, without this shard.
    const bool is_there = copy != there.end() && truth.is_complete(name, copy->second) &&
                          (scene_.settings.nodes <= 1 || std::ranges::includes(copy->second, content));
    const auto highest = truth.highest_in(there, form_in_short(name));
    const bool is_after =
        highest && (scene_.settings.nodes <= 1 ? truth.is_known_to_be_after(machine.index, name, *highest)
                                               : truth.is_after(save->second, *highest));
    const bool is_superseded = highest && truth.step_of(*highest) > save->second.step && !is_after &&
                               !is_multiple(save->second.step, scene_.settings.keep_every);
    if (!is_there && !is_superseded) {
      const bool is_damaged = copy != there.end() && truth.complete.contains(name);
      return scene_.broken("deleted-only-copy-" + (is_damaged ? "damaged" : cause_of(name)),
                           who + ": it is complete, and the volume has " + in_short(there));
    }
    // The job may delete a higher one between the look and the deletion; this one is on the volume.
    const auto has_just_gone = [&](const Save& other) {
      return scene_.now() - other.changed < std::chrono::seconds(5);
    };
    const bool is_higher_here = std::ranges::any_of(saves, [&](const auto& other) {
      return other.second.step > save->second.step &&
             (seems_to_stand(other.first, other.second, here) || has_just_gone(other.second));
    });
    const bool was_higher_here = std::ranges::any_of(
        truth.gone, [&](const Save& gone) { return gone.step > save->second.step && has_just_gone(gone); });
    if (!is_higher_here && !was_higher_here && !is_superseded)
      scene_.noted("deleted-newest-here-" + cause_between(newest_of(machine.job_folder(), here), name),
                   who + ", the highest step here");
  }
}

void Oracles::check_logged(const Listing& before, const Listing& now, const std::string& folder, char end) {
  for (const auto& [name, content] : before) {
    const std::string told = "deleting " + folder + name + end;
    const bool is_logged =
        now.contains(name) || std::ranges::any_of(scene_.logged, [&](const std::string& sentence) {
          return sentence.find(told) != std::string::npos;
        });
    if (!is_logged) return scene_.broken("deleted-unsaid", "the journal does not say why " + name + " went");
  }
}

void Oracles::check_own_link(const Machine& machine, const Before& before) {
  const std::string now = link_at(machine.job_folder() / "latest");
  if (machine.own_link.empty() || before.link_here != machine.own_link || now == machine.own_link) return;
  scene_.noted("job-link-replaced", machine.name() + " replaced the job's own link `latest` -> " +
                                        machine.own_link + " by -> " + now);
}

void Oracles::check_deleted_there(const Before& before, const Listing& there) {
  const Truth& truth = scene_.truth;
  for (const auto& [name, content] : before.there) {
    if (is_ours(name) || there.contains(name) || !truth.is_complete(name, content)) continue;
    const auto highest = truth.highest_in(before.there, form_in_short(name));
    const std::uint64_t step = truth.step_of(name);
    const std::string what = name + " was deleted on the volume, which now has " + in_short(there);
    if (highest == name) return scene_.broken("pruned-" + cause_of(name), what);
    // A sending in progress knows the earlier configuration.
    const bool is_reloaded = scene_.now() - truth.last_reload < std::chrono::minutes(1);
    if (is_reloaded && (scene_.settings.keep == 0 || is_multiple(step, scene_.settings.keep_every)))
      return scene_.broken("pruned-after-reload", what);
    if (is_multiple(step, scene_.settings.keep_every)) return scene_.broken("pruned-keep-every", what);
    std::uint32_t higher = 0, lower = 0;
    bool is_export_there = false, is_other_there = false, is_touched_kept = false;
    for (const auto& [other, its] : there) {
      is_other_there = is_other_there || (!truth.is_checkpoint(other) && !is_ours(other));
      is_export_there = is_export_there || truth.exports.contains(other);
      if (!truth.is_complete(other, its) || form_in_short(other) != form_in_short(name)) continue;
      ++(truth.step_of(other) > step ? higher : lower);
      is_touched_kept = is_touched_kept || (truth.step_of(other) < step && truth.touched.contains(other));
    }
    if (lower > 0 && higher < scene_.settings.keep)
      return scene_.broken("pruned-" + (is_export_there   ? "export"
                                        : is_other_there  ? "beside"
                                        : is_touched_kept ? "touched"
                                                          : cause_of(name)),
                           what);
    if (scene_.settings.keep == 0) return scene_.broken("pruned-unasked", what);
  }
}

}  // namespace spark::histories
