#include "fleet/copies/peer_copies.hpp"

#include <algorithm>
#include <chrono>
#include <map>

#include "base/text.hpp"
#include "base/threads.hpp"
#include "fleet/protocol/set_id.hpp"

namespace spark::fleet {
namespace {

constexpr TimeLimits kAsking{std::chrono::milliseconds(5'000), std::chrono::milliseconds(10'000)};
constexpr Bytes kMostList = 8 * kMiB;
constexpr std::size_t kShownDigits = 12;  // of a hash
constexpr char kWithheld[] = "it has adopted a folder, and does not offer it now";

PeerAnswer ask(Peer& peer) {
  PeerAnswer answer{peer.name()};
  const auto text = peer.get_text({.kind = PeerRequest::Kind::Datasets}, kMostList, kAsking);
  const auto object = text ? parse_json_object(*text) : text.take_error();
  const json::array* list = object ? get_array(*object, "datasets") : nullptr;
  if (list != nullptr) {
    answer.copies = copies_in(*list);
    answer.withheld = withheld_in(*list);
  } else {
    answer.silence = object ? "it sent no list of its datasets" : object.error().what;
  }
  return answer;
}

std::string in_words(const WantedCopy& wanted) {
  if (!wanted.model) return "dataset " + printable(wanted.dataset);
  const std::string& revision = wanted.model->revision;
  return "model " + printable(wanted.model->name) +
         (revision.empty() ? "" : " in revision " + printable(revision));
}

// Whatever it is pinned to.
bool is_it(const PeerCopy& copy, const WantedCopy& wanted) {
  if (!wanted.model) return copy.dataset == wanted.dataset;
  staging::ModelOptions options = *wanted.model;
  options.expect.clear();
  return copy.model && copy.model->satisfies(options) &&
         (options.revision.empty() || copy.model->revision == options.revision);
}

bool is_it(const WithheldFolder& folder, const WantedCopy& wanted) {
  return wanted.model ? folder.model == wanted.model->name : folder.dataset == wanted.dataset;
}

struct Found {
  std::string peer;
  const PeerCopy* copy;
};

// Those that have the pinned content, or else those that may have it.
Result<std::vector<Found>> pinned(const WantedCopy& wanted, std::vector<Found> all) {
  const std::string expect = wanted.model ? wanted.model->expect : "";
  if (expect.empty() || all.empty()) return all;
  const auto keep = [&](const std::string& pin) {
    std::vector<Found> kept;
    std::ranges::copy_if(all, std::back_inserter(kept),
                         [&](const Found& one) { return one.copy->model->pin == pin; });
    return kept;
  };
  auto right = keep(expect);
  if (right.empty()) right = keep("");
  if (!right.empty()) return right;
  const Found& other = all.front();
  return fail(Errc::Mismatch,
              in_words(wanted) + " is not the one that 'expect' pins: " + printable(other.peer) + " has " +
                  printable(other.copy->model->pin),
              "choose the revision and the files that were pinned, or pin this one");
}

tl::unexpected<Error> differ(const WantedCopy& wanted, const std::vector<Found>& found) {
  std::string all;
  for (const Found& one : found) {
    all +=
        (all.empty() ? "" : ", ") + printable(one.peer) + " " + one.copy->hash.substr(0, kShownDigits) + "…";
    if (one.copy->model && !one.copy->model->revision.empty())
      all += " (revision " + printable(one.copy->model->revision) + ")";
  }
  return fail(Errc::Mismatch, "peers have different copies of " + in_words(wanted) + ": " + all,
              wanted.model ? "name a commit as 'revision', or pin the files with 'expect'"
                           : "`spark-stage ls --fleet` compares them; stage it again where it is old");
}

tl::unexpected<Error> missing(const WantedCopy& wanted, std::span<const PeerAnswer> answers) {
  std::string silent;
  for (const PeerAnswer& answer : answers) {
    const bool is_withheld =
        std::ranges::any_of(answer.withheld, [&](const auto& one) { return is_it(one, wanted); });
    if (!answer.silence.empty() || is_withheld)
      silent += (silent.empty() ? "" : "; ") + printable(answer.peer) + ": " +
                (is_withheld ? kWithheld : answer.silence);
  }
  if (silent.empty())
    return fail(Errc::NotFound, "no peer has a copy of " + in_words(wanted),
                answers.empty()
                    ? "name the other hosts in fleet.peers"
                    : "stage it on a host that has it; `spark-stage ls --fleet` lists all copies");
  auto away = fail(Errc::Unavailable, "no peer offers a copy of " + in_words(wanted) + " now: " + silent,
                   "`spark-stage status` here shows the peers, and there their adopted folders");
  away.value().is_away = true;
  return away;
}

}  // namespace

std::vector<PeerCopy> copies_in(const json::array& list) {
  std::vector<PeerCopy> copies;
  for (const json::value& value : list) {
    const json::object* one = value.if_object();
    if (one == nullptr) continue;
    PeerCopy copy{get_text(*one, "name"), get_text(*one, "hash")};
    if (!is_content_hash(copy.hash)) continue;
    copy.model = staging::parse_model_record(get_text(*one, "model"));
    copies.push_back(std::move(copy));
  }
  return copies;
}

std::vector<WithheldFolder> withheld_in(const json::array& list) {
  std::vector<WithheldFolder> folders;
  for (const json::value& value : list) {
    const json::object* one = value.if_object();
    if (one != nullptr && get_bool(*one, "withheld").value_or(false))
      folders.push_back({get_text(*one, "name"), get_text(*one, "model_name")});
  }
  return folders;
}

std::vector<PeerAnswer> ask_for_copies(std::span<const std::unique_ptr<Peer>> peers) {
  std::vector<PeerAnswer> answers;
  for (const auto& peer : peers) answers.push_back({peer->name(), {}, {}, "it was not asked: out of memory"});
  // An answer that is missing is one of a silent peer.
  static_cast<void>(run_in_threads(peers.size(), [&](std::size_t i) { answers[i] = ask(*peers[i]); }));
  return answers;
}

Result<ChosenCopy> choose_copy(const WantedCopy& wanted, std::span<const PeerAnswer> answers) {
  std::vector<Found> all;
  for (const PeerAnswer& answer : answers)
    for (const PeerCopy& copy : answer.copies)
      if (is_it(copy, wanted)) all.push_back({answer.peer, &copy});
  const auto found = pinned(wanted, std::move(all));
  if (!found) return found.take_error();
  if (found->empty()) return missing(wanted, answers);
  ChosenCopy chosen{found->front().copy->hash};
  // The files are the same then, and their modes or names in the cache may differ.
  const bool is_pinned = wanted.model && !wanted.model->expect.empty() &&
                         found->front().copy->model->pin == wanted.model->expect;
  for (const Found& one : *found) {
    if (one.copy->hash != chosen.hash && is_pinned) continue;
    if (one.copy->hash != chosen.hash) return differ(wanted, *found);
    if (chosen.peers.empty() || chosen.peers.back() != one.peer) chosen.peers.push_back(one.peer);
  }
  return chosen;
}

}  // namespace spark::fleet
