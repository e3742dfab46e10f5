#include "cli/verbs/fleet_join.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>

#include "base/file.hpp"
#include "base/network/addresses.hpp"
#include "base/network/nics.hpp"
#include "base/text.hpp"
#include "cli/client/api.hpp"
#include "cli/join/fleet_text.hpp"
#include "cli/join/given_key.hpp"
#include "cli/join/replace_file.hpp"
#include "cli/new_file.hpp"
#include "cli/say.hpp"
#include "cli/verbs/fleet_here.hpp"
#include "cli/verbs/this_host.hpp"
#include "daemon/config/parse.hpp"
#include "daemon/config/section.hpp"
#include "daemon/config/values.hpp"
#include "fleet/transport/key.hpp"

namespace spark::cli {
namespace {

// A daemon starts the process that serves peers again, and asks its peers every 5 s.
constexpr Duration kServing{15'000}, kAnswering{12'000}, kPause{500};

// What the file says, or none if it is not there.
Result<std::string> text_of(const std::string& file) {
  auto text = read_file(file);
  if (!text && text.error().kind == Errc::NotFound) return std::string();
  return text;
}

// True if a new key was made, which no other host can have. `is_member`: the other hosts of the fleet have
// its key already.
Result<bool> settle_key(Context& context, const std::filesystem::path& file, const std::string& given,
                        const std::string& from, bool is_member) {
  std::error_code unknown;
  const bool is_copy = !given.empty() && from != "-" && !std::filesystem::equivalent(from, file, unknown);
  const auto tell_copy = [&] {
    if (is_copy) say(context, "delete " + printable(from) + ", which is a copy of it");
  };
  if (std::filesystem::exists(file, unknown)) {
    const auto there = fleet::read_key(file);
    if (!there) return there.take_error();
    if (given == *there) tell_copy();
    if (given.empty() || given == *there) return false;
    return fail(Errc::Refused,
                printable(file.native()) + " has another key than the one given: a fleet has one",
                "if this host leaves its old fleet, delete " + printable(file.native()) + " first");
  }
  if (given.empty() && is_member)
    return fail(Errc::Refused, "the key " + printable(file.native()) + " of this fleet is missing",
                "take it from another host with --key-file; `sudo spark-stage fleet key --output " +
                    printable(file.native()) + "` begins a new fleet");
  const auto key = given.empty() ? fleet::new_key() : Result<std::string>(given);
  if (!key) return key.take_error();
  ::mkdir(file.parent_path().c_str(), 0700);  // a failure is that of the file
  if (auto written = write_new_file(file, *key + "\n", 0600); !written) return written.take_error();
  say(context, (given.empty() ? "made the key " : "took the key as ") + printable(file.native()));
  tell_copy();
  return given.empty();
}

// Also of a link to a file that is not there.
std::filesystem::path target_of(std::filesystem::path file) {
  constexpr int kMostLinks = 40;  // as in the kernel
  std::error_code error;
  for (int link = 0; link < kMostLinks && std::filesystem::is_symlink(file, error); ++link) {
    const auto to = std::filesystem::read_symlink(file, error);
    if (error) break;
    file = file.parent_path() / to;
  }
  return file;
}

// With its owner, mode and ACL; a symbolic link stays one. Refused: the file is not as it was.
Result<> replace_text(const std::filesystem::path& file, const std::string& before, const std::string& text) {
  const std::filesystem::path path = target_of(file);
  std::error_code unknown;
  const auto now = text_of(path);
  if (!now) return now.take_error();
  if (*now != before)
    return fail(Errc::Refused, printable(file.native()) + " was changed meanwhile", "type the command again");
  return std::filesystem::exists(path, unknown) ? replace_file(path, text)
                                                : write_file_atomically(path, text);
}

// By which the other hosts know it.
std::string own_name() {
  const std::string name = host_name(), first = name.substr(0, name.find('.'));
  return config::is_name(first) ? first + "=" : "";
}

std::string words_of(const std::string& name, const nvmetcp::Portal& address) {
  return name + "=" + (address.port == kFleetPort ? address.address : to_string(address));
}

// Each host once, by its first address.
std::vector<FleetHere::Peer> hosts_of(const FleetHere& fleet) {
  std::vector<FleetHere::Peer> hosts;
  for (const FleetHere::Peer& peer : fleet.peers)
    if (std::ranges::find(hosts, peer.name, &FleetHere::Peer::name) == hosts.end()) hosts.push_back(peer);
  return hosts;
}

// All hosts of a fleet know each other.
std::string others_than(const FleetHere& fleet, const FleetHere::Peer& peer) {
  std::string words;
  for (const FleetHere::Peer& other : hosts_of(fleet))
    if (other.name != peer.name) words += " " + words_of(other.name, other.address);
  return words;
}

// Whether the others are in several networks, as three Sparks in a ring are.
bool is_ring(const FleetHere& fleet) {
  std::set<std::string> own;
  for (const FleetHere::Peer& host : hosts_of(fleet))
    own.insert(address_towards(host.address.address).value_or(""));
  return own.size() > 1;
}

// The commands for one of the others. It has to listen where this host looks for it.
void tell_other(Context& context, const FleetHere& fleet, const FleetHere::Peer& peer) {
  const std::string& host = peer.address.address;
  const nvmetcp::Portal own = reached_from(fleet, peer.address);
  nvmetcp::Portal its = peer.address;
  if (const auto addresses = addresses_behind(host); addresses && !addresses->empty())
    its.address = addresses->front();
  context.out << "  sudo cat " << printable(fleet.key_file.native()) << " | ssh " << host
              << " 'umask 077; cat > fleet.key'\n"
              << "  ssh -t " << host << " sudo spark-stage fleet join " << own_name()
              << (own.port == kFleetPort ? own.address : to_string(own)) << others_than(fleet, peer)
              << " --key-file fleet.key" << (its.port == kFleetPort ? "" : " --listen " + to_string(its))
              << "\n\n";
}

// The next steps on the other hosts.
void tell_others(Context& context, const FleetHere& fleet) {
  context.out << "\nOn each other host, with this key in a file that only root can read:\n\n";
  for (const FleetHere::Peer& host : hosts_of(fleet)) tell_other(context, fleet, host);
  if (fleet.peers.empty()) tell_other(context, fleet, {"HOST", {"HOST", kFleetPort}});
  if (is_ring(fleet))
    context.out
        << "The others are named by the addresses at which this host reaches them. Where two of them\n"
           "reach each other in another network, as in a ring, write those addresses instead.\n";
  context.out << "Then here, to test the link: sudo spark-stage fleet test\n";
  if (fleet.peers.empty())
    context.out << "First tell this host who the others are: sudo spark-stage fleet join ADDRESS…\n";
}

// Each once: this host may listen in several networks.
void tell_addresses(Context& context, const FleetHere& fleet) {
  const auto nics = read_nics(context.root);
  std::vector<nvmetcp::Portal> told;
  const auto tell_one = [&](const nvmetcp::Portal& own) {
    if (std::ranges::find(told, own) != told.end()) return;
    told.push_back(own);
    const std::string card = interface_of(own.address);
    const Nic* nic = find_nic(nics, card);
    say(context, "this host is reached at " + to_string(own) +
                     (card.empty() ? "" : ", " + card + (nic == nullptr ? "" : ", " + speed_of(*nic))));
  };
  for (const FleetHere::Peer& peer : fleet.peers) tell_one(reached_from(fleet, peer.address));
  if (fleet.peers.empty()) tell_one(fleet.listen);
}

// There was no configuration, without which the daemon can't have run.
void tell_start(Context& context) {
  say(context, "now: sudo systemctl enable --now spark-staged");
  say(context,
      "set up, but no link is tested yet: once the daemon runs on both hosts, `sudo spark-stage fleet join` "
      "again tests it");
}

Result<> reload(Context& context) {
  const auto reloaded = call(*context.client, {"POST", "/v1/reload", ""});
  if (reloaded) return {};
  if (reloaded.error().kind != Errc::Unavailable) return reloaded.take_error();
  return fail(Errc::Unavailable, "spark-staged does not run, so this host serves no peer yet",
              "`sudo systemctl enable --now spark-staged`, then the same command again");
}

// Whether the daemon serves peers, and knows these; `answering`: and had an answer of each lately.
bool is_served(const json::object* fleet, const FleetHere& wanted, bool answering) {
  if (fleet == nullptr || !get_bool(*fleet, "serving").value_or(false)) return false;
  const auto peers = objects_in(*fleet, "peers");
  return std::ranges::all_of(wanted.peers, [&](const FleetHere::Peer& peer) {
    return std::ranges::any_of(peers, [&](const json::object& row) {
      return get_string(row, "name") == peer.name && (!answering || get_bool(row, "answers").value_or(false));
    });
  });
}

Result<> wait_until_served(Context& context, const FleetHere& fleet, bool answering) {
  std::string why = "the daemon has not begun to serve peers";
  for (const SteadyTime end = context.timer.steady() + kServing; context.timer.steady() < end;
       context.timer.sleep(kPause)) {
    const auto status = call(*context.client, {"GET", "/v1/status", {}});
    const json::object* now = status ? get_object(*status, "fleet") : nullptr;
    if (is_served(now, fleet, answering)) return {};
    if (now != nullptr) why = get_string(*now, "reason").value_or(why);
    if (context.stop) return fail(Errc::Cancelled, "interrupted before the link was tested");
  }
  return fail(Errc::Unavailable, "this host serves no peer: " + why, "`journalctl -u spark-staged` has more");
}

// Until the peer answers at one of its addresses; the last reason if it does not.
Result<> wait_for_peer(Context& context, const doctor::LinkMeter& meter, const FleetHere& fleet,
                       const std::string& name) {
  for (const SteadyTime end = context.timer.steady() + kAnswering;; context.timer.sleep(kPause)) {
    std::optional<Error> why;
    for (const auto& [own_name, address] : fleet.peers) {
      if (own_name != name) continue;
      auto seen = meter.look({address.address, address.port});
      if (seen || seen.error().kind == Errc::Unsupported) return {};
      if (!why || seen.error().kind == Errc::Denied)
        why = fail_with(seen.error(), "peer " + name + " at " + to_string(address)).value();
    }
    if (why->kind == Errc::Denied || context.timer.steady() >= end || context.stop) return fail(*why);
  }
}

Result<int> test(Context& context, const FleetHere& fleet) {
  if (auto served = wait_until_served(context, fleet, false); !served) return served.take_error();
  const doctor::Host host = this_host(context);
  if (!host.config) return host.config.take_error();
  const doctor::LinkMeter meter = link_meter(context, host, false);
  if (meter.error) return fail(*meter.error);
  std::vector<std::string> names;
  for (const FleetHere::Peer& peer : hosts_of(fleet)) {
    if (auto answers = wait_for_peer(context, meter, fleet, peer.name); !answers) {
      if (answers.error().kind != Errc::Denied) tell_others(context, fleet);
      return answers.take_error();
    }
    names.push_back(peer.name);
  }
  static_cast<void>(wait_until_served(context, fleet, true));  // else the test says why not
  doctor::Report report;
  auto tested = doctor::test_links(host, meter, names, report);
  meter.progress("");
  if (!tested) return tested.take_error();
  const int status = show_report(context, report, false);
  say(context,
      "the links were tested from here; whether the others reach this host, `sudo spark-stage fleet test` on "
      "each of them tells");
  return status;
}

}  // namespace

Result<int> join_fleet(Context& context, const JoinOptions& options) {
  if (!context.is_root)
    return fail(Errc::Denied, "joining a fleet: only root may", "run `sudo spark-stage fleet join`");
  const auto file = absolute_path(context.config_file);
  if (!file) return file.take_error();
  // First, since it may wait for a person, who may edit the file meanwhile.
  const auto given = given_key(context.in, options.key_file);
  if (!given) return given.take_error();
  const auto text = text_of(*file);
  if (!text) return text.take_error();
  const bool is_new_file = is_without_settings(*text);
  const auto before = is_new_file ? Result<config::Config>(config::Config{}) : config::load(*file);
  if (!before) return before.take_error();
  const auto fleet = wanted_fleet(*file, options, before->fleet);
  if (!fleet) return fleet.take_error();
  const auto with = with_fleet(*text, context.config_file, *fleet);
  if (!with) return with.take_error();
  const auto is_new =
      settle_key(context, fleet->key_file, *given, options.key_file, !before->fleet.listen.empty());
  if (!is_new) return is_new.take_error();
  if (*with != *text) {
    if (auto written = replace_text(*file, *text, *with); !written) return written.take_error();
    say(context, "wrote the section `fleet` into " + printable(context.config_file));
  }
  tell_addresses(context, *fleet);
  auto reloaded = reload(context);
  const bool is_alone = *is_new || fleet->peers.empty();
  const bool is_to_start = is_new_file && !reloaded && reloaded.error().kind == Errc::Unavailable;
  if (is_to_start) tell_start(context);
  if (is_alone) tell_others(context, *fleet);
  if (is_to_start) return 0;
  if (!reloaded) return reloaded.take_error();
  if (!is_alone) return test(context, *fleet);
  if (auto served = wait_until_served(context, *fleet, false); !served) return served.take_error();
  return 0;
}

}  // namespace spark::cli
