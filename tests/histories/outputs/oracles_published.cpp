// What is on the volume, and what `latest` says.
#include <algorithm>

#include "tests/histories/outputs/daemon.hpp"
#include "tests/histories/outputs/oracles.hpp"

namespace spark::histories {
namespace {

constexpr Duration kLongestLook{60'000};

}  // namespace

void Oracles::check_published(const Machine& machine, const workers::Call& call, const Before& before,
                              const Listing& there) {
  Truth& truth = scene_.truth;
  const bool is_automatic = !get_string(call.request, "rule").value_or("").empty();
  for (const auto& [name, content] : there) {
    const auto earlier = before.there.find(name);
    if (name == "latest" || (earlier != before.there.end() && earlier->second == content)) continue;
    const std::string who = machine.name() + " published " + name;
    if (earlier != before.there.end() && truth.is_complete(name, earlier->second) && !is_automatic &&
        !truth.is_complete(name, content)) {
      truth.damaged.insert(name);
      return scene_.noted("published-changed", who + " by hand into it: it is no longer what it was");
    }
    if (!is_automatic) continue;
    if (truth.beside.contains(name)) {
      scene_.noted("published-beside", who + ", which is no checkpoint");
      continue;
    }
    if (truth.numbered.contains(name)) continue;
    if (truth.temporary.contains(name)) {
      scene_.noted("published-temporary", who + ", which is not finished");
      continue;
    }
    if (!truth.is_checkpoint(name)) {
      scene_.noted("left-on-volume", who + ", which nobody asked for: a file of an interrupted worker");
      continue;
    }
    if (truth.is_complete(name, content)) {
      truth.sent[{machine.index, name}] = scene_.now();
      continue;
    }
    const auto save = truth.here[machine.index].find(name);
    const bool is_known = save != truth.here[machine.index].end();
    if (is_known && save->second.state == Save::State::Unclear) continue;
    const std::string state = is_known ? to_string(save->second.state) : "unknown";
    const bool is_left = is_remnant(machine, name);
    const bool is_unfinished = !is_left && was_marked_unfinished(name);
    const std::string what = who + ", whose files are not those of a complete state; here it is " + state;
    if (!is_unfinished && !is_left) return scene_.broken("published-incomplete", what);
    scene_.noted(is_unfinished ? "published-unfinished" : "published-remnant", what);
  }
}

bool Oracles::is_remnant(const Machine& machine, const std::string& name) const {
  const auto save = scene_.truth.here[machine.index].find(name);
  const bool is_saved_again =
      save != scene_.truth.here[machine.index].end() && save->second.state == Save::State::Saving;
  return scene_.truth.remnants.contains(name) && !is_saved_again;
}

bool Oracles::is_told_of_clock(const Machine& machine, const std::string& name) const {
  if (scene_.truth.last_clock_change == SteadyTime()) return false;
  return std::ranges::any_of(scene_.machines, [&](const std::unique_ptr<Machine>& one) {
    const bool is_asked = one.get() == &machine || scene_.settings.nodes > 1;
    const auto output = is_asked && one->daemon ? one->daemon->output() : nullptr;
    const std::string unsent = output ? output->facts().unsent : "";
    // One is told at a time, the highest first.
    const std::string told = unsent.substr(0, unsent.find(" is not on "));
    return scene_.truth.step_of(told) >= scene_.truth.step_of(name) &&
           unsent.find("send it with `spark-stage stage-out ") != std::string::npos;
  });
}

// DeepSpeed's is a file.
std::string Oracles::pointer_there() const {
  const std::filesystem::path latest = scene_.published() / "latest";
  if (scene_.settings.complete != config::Complete::DeepSpeed) return link_at(latest);
  const Content content = content_of(latest);
  const auto text = content.find("");
  return text == content.end() ? "" : text->second;
}

// `is_moved`: right after a sending that has moved it.
void Oracles::check_pointer(const Listing& there, bool is_moved) {
  const auto highest = scene_.truth.highest_in(there);
  const std::string named = pointer_there();
  if (!highest || named == *highest) return;
  const std::string what = "`latest` on the volume names " + (named.empty() ? "nothing" : named) + ", and " +
                           *highest + " is complete there";
  if (!there.contains(named) && (is_moved || !named.empty())) return scene_.broken("pointer-dangling", what);
  if (is_moved && scene_.truth.step_of(named) < scene_.truth.step_of(*highest))
    scene_.noted("pointer-" + cause_of(*highest), what);
}

const std::pair<const std::string, Save>* Oracles::highest_here(const Machine& machine,
                                                                Duration quiet) const {
  const std::pair<const std::string, Save>* highest = nullptr;
  for (const auto& one : scene_.truth.here[machine.index]) {
    const Save& save = one.second;
    if (!scene_.truth.is_whole(machine.index, one.first, scene_.settings.nodes > 1) ||
        scene_.now() - save.changed < quiet)
      continue;
    if (highest == nullptr || save.step > highest->second.step) highest = &one;
  }
  return highest;
}

bool Oracles::is_told_instead(const Machine& machine, const json::object& answer,
                              const std::string& best) const {
  const Truth& truth = scene_.truth;
  const json::object* unproven = get_object(answer, "unproven");
  if (truth.last_clock_change == SteadyTime() || unproven == nullptr) return false;
  const std::string told = get_string(*unproven, "name").value_or("");
  // One is told at a time, the highest first: the best may be as unclear, saved while the clock was set,
  // which no look had seen by then.
  const auto save = truth.here[machine.index].find(best);
  return save != truth.here[machine.index].end() &&
         save->second.changed >= truth.last_clock_change - kLongestLook &&
         truth.step_of(told) >= truth.step_of(best);
}

void Oracles::check_latest(const Machine& machine, const Result<json::object>& answer, const Before& before) {
  const Truth& truth = scene_.truth;
  Listing there = listing_of(scene_.published());
  std::erase_if(there, [&](const auto& one) {
    const auto earlier = before.there.find(one.first);
    return earlier == before.there.end() || earlier->second != one.second;
  });
  const auto highest = truth.highest_in(there);
  const auto* here = scene_.settings.nodes > 1 ? nullptr : highest_here(machine, Duration(10'000));
  std::string best = highest.value_or("");
  if (here != nullptr && (best.empty() || here->second.step > truth.step_of(best))) best = here->first;
  const std::string who = "`latest` on " + machine.name();
  if (!answer) {
    if (answer.error().kind == Errc::NotFound && !best.empty())
      scene_.broken(
          truth.last_clock_change != SteadyTime() ? "latest-none-clock" : "latest-none",
          who + " says that there is none, but " + best + " is complete: " + answer.error().message());
    return;
  }
  const std::string name = get_string(*answer, "name").value_or("");
  if (name.empty()) return;  // only a pending one
  const bool is_local = answer->contains("local");
  const Content content = content_of((is_local ? machine.job_folder() : scene_.published()) / name);
  const std::string what = who + " names " + name + (is_local ? " here" : " on the volume");
  if (truth.exports.contains(name))
    return scene_.noted("latest-export", what + ", which a person sent there");
  if (truth.temporary.contains(name))
    return scene_.noted("latest-temporary", what + ", which is not finished");
  const bool is_told = is_told_instead(machine, *answer, best);
  if (truth.numbered.contains(name) && (best.empty() || is_told)) return;  // the only one
  if (!truth.is_checkpoint(name)) return scene_.noted("latest-beside", what + ", which is no checkpoint");
  const auto save = truth.here[machine.index].find(name);
  const bool is_unclear =
      save != truth.here[machine.index].end() && save->second.state == Save::State::Unclear;
  if (is_unclear) return;
  const auto asked = before.here.find(name);
  const bool was_complete = is_local && asked != before.here.end() && truth.is_complete(name, asked->second);
  if (!truth.is_complete(name, content)) {
    if (was_complete) return;
    const bool is_left = is_remnant(machine, name);
    const bool is_unfinished = !is_left && was_marked_unfinished(name),
               is_damaged = !is_local && truth.damaged.contains(name);
    return scene_.broken(is_unfinished ? "latest-unfinished"
                         : is_left     ? "latest-remnant"
                         : is_damaged  ? "latest-damaged"
                                       : "latest-incomplete",
                         what + ", which is not complete");
  }
  if (best.empty() || truth.step_of(name) >= truth.step_of(best)) return;
  if (is_told) return;
  // It can't know what another host has published.
  const bool is_cut_off =
      !scene_.volume.is_reached_by(machine.index) && (here == nullptr || best != here->first);
  scene_.broken("latest-older-" + (is_cut_off ? "away" : cause_between(name, best)),
                what + ", but " + best + " is complete");
}

void Oracles::check_facts(const Machine& machine) {
  const auto output = machine.daemon ? machine.daemon->output() : nullptr;
  const auto* here = highest_here(machine, Duration(40'000));
  const Duration since_change = std::chrono::floor<Duration>(
      scene_.now() - std::max(machine.started, scene_.volume.changed[machine.index]));
  const bool is_away = !scene_.volume.is_reached_by(machine.index);
  if (!output || here == nullptr || !is_away || since_change < Duration(40'000) ||
      scene_.settings.complete == config::Complete::OnRequest || scene_.settings.nodes > 1)
    return;
  const Listing there = listing_of(scene_.published());
  const auto highest = scene_.truth.highest_in(there);
  const bool is_sent = highest && scene_.truth.step_of(*highest) >= here->second.step;
  if (!is_sent && output->facts().backlog == 0 && output->facts().latest_local == here->first) {
    return scene_.noted("backlog-zero-while-away", machine.name() + " has " + here->first +
                                                       ", which is not on the volume, and shows no backlog");
  }
  const auto copy = there.find(here->first);
  const bool is_this_sent = copy != there.end() &&
                            copy->second == content_of(machine.job_folder() / here->first) &&
                            here->second.changed == here->second.done;  // on this host
  // The answer of the worker that sent it was lost, and the volume then.
  const bool is_unknown = machine.answer_lost && scene_.volume.changed[machine.index] - *machine.answer_lost <
                                                     std::chrono::minutes(1);
  if (is_this_sent && !is_unknown && output->facts().unsent.starts_with(here->first + " is not on "))
    scene_.noted("unsent-while-away",
                 machine.name() + " says: " + output->facts().unsent + "; but it is there");
}

std::optional<Violation> Oracles::why_not_settled(const Machine& machine) const {
  const auto output = machine.daemon ? machine.daemon->output() : nullptr;
  if (!output) return Violation{"not-running", machine.name() + " does not run"};
  const Truth& truth = scene_.truth;
  const Listing there = listing_of(scene_.published());
  const auto highest = truth.highest_in(there);
  const auto* here = highest_here(machine, Duration(0));
  const bool sends = scene_.settings.complete != config::Complete::OnRequest;
  const auto& transfers = machine.daemon->stage_outs().transfers();
  const bool is_throttled = std::ranges::any_of(
      transfers, [](const outputs::TransferPtr& one) { return one->request().max_rate > 0; });
  if (!transfers.empty() && !is_throttled && scene_.settings.nodes <= 1)
    return Violation{"request-never-ends",
                     machine.name() + " still sends " + transfers.front()->request().source};
  if (sends && here != nullptr && (!highest || truth.step_of(*highest) < here->second.step) &&
      !is_told_of_clock(machine, here->first)) {
    return Violation{"not-sent-" + (is_throttled ? "throttled" : cause_of(here->first)),
                     machine.name() + " has not sent " + here->first + "; the volume has " + in_short(there) +
                         "; it says: " + json::serialize(output->to_json())};
  }
  if (sends && scene_.settings.nodes <= 1) {
    if (auto left = why_not_all_sent(machine, there)) return left;
  }
  const std::string named = pointer_there();
  if (sends && highest && named != *highest && truth.step_of(named) < truth.step_of(*highest)) {
    return Violation{"pointer-" + cause_of(*highest),
                     "`latest` on the volume names " + named + ", but " + *highest + " is complete there"};
  }
  if (!sends || !output->facts().unsent.empty()) return sends ? unsent_in_the_end(machine) : std::nullopt;
  if (output->facts().backlog > 0) {
    return Violation{"backlog-in-the-end", machine.name() + " shows a backlog of " +
                                               std::to_string(output->facts().backlog) + " bytes"};
  }
  return std::nullopt;
}

// All files of the highest step are on the volume; and what a job has saved after it went back to an earlier
// step is there, or it says so.
std::optional<Violation> Oracles::why_not_all_sent(const Machine& machine, const Listing& there) const {
  const Truth& truth = scene_.truth;
  const std::string unsent = machine.daemon->output()->facts().unsent;
  const Listing here = listing_of(machine.job_folder());
  for (const auto& [name, save] : truth.here[machine.index]) {
    const auto copy = there.find(name);
    const bool is_there = copy != there.end() && truth.is_complete(name, copy->second);
    if (!here.contains(name)) continue;  // deleted by keep_local, which was judged then
    if (is_there || save.state != Save::State::Complete || is_told_of_clock(machine, name)) continue;
    const auto highest = truth.highest_in(there, form_in_short(name));
    const bool is_lower = highest && truth.step_of(*highest) > save.step;
    if (!is_lower && !is_higher_here(machine, name, save))
      return Violation{"not-sent-in-part", machine.name() + " has not sent " + name + "; the volume has " +
                                               in_short(there) + "; it says: " + unsent};
    if (is_lower && unsent.empty() && truth.is_known_to_be_after(machine.index, name, *highest))
      return Violation{"unsent-unsaid", machine.name() + " does not say that " + name +
                                            " is not sent, though the job saved it after " + *highest};
  }
  return std::nullopt;
}

bool Oracles::is_higher_here(const Machine& machine, const std::string& name, const Save& save) const {
  return std::ranges::any_of(scene_.truth.here[machine.index], [&](const auto& other) {
    return other.second.step > save.step && form_in_short(other.first) == form_in_short(name);
  });
}

// The sentence may be right: the newest entry may be one that the job never finished.
std::optional<Violation> Oracles::unsent_in_the_end(const Machine& machine) const {
  const std::string unsent = machine.daemon->output()->facts().unsent;
  const Truth& truth = scene_.truth;
  const std::string name = unsent.substr(0, unsent.find(" is not on "));
  if (truth.beside.contains(name))
    return Violation{"unsent-beside", machine.name() + " says of a file that is no checkpoint: " + unsent};
  if (!truth.is_whole(machine.index, name, scene_.settings.nodes > 1)) return std::nullopt;
  // A job that went back to an earlier step is told so.
  const auto highest = truth.highest_in(listing_of(scene_.published()));
  const bool is_overtaken = highest && truth.step_of(*highest) > truth.step_of(name);
  if (is_overtaken && unsent.find("of a later step") != std::string::npos) return std::nullopt;
  if (is_told_of_clock(machine, name)) return std::nullopt;
  const bool is_by_clock = truth.last_clock_change != SteadyTime() && scene_.settings.nodes <= 1;
  return Violation{is_by_clock ? "unsent-clock" : "unsent-in-the-end", machine.name() + " says: " + unsent};
}

}  // namespace spark::histories
