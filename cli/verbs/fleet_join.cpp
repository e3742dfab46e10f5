#include "cli/verbs/fleet_join.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "base/network/nics.hpp"
#include "base/text.hpp"
#include "cli/client/api.hpp"
#include "cli/join/fleet_text.hpp"
#include "cli/new_file.hpp"
#include "cli/say.hpp"
#include "cli/verbs/this_host.hpp"
#include "cli/view/screens.hpp"
#include "daemon/config/parse.hpp"
#include "daemon/config/section.hpp"
#include "daemon/config/values.hpp"
#include "fleet/transport/key.hpp"
#include "fleet/transport/name_service.hpp"
#include "fleet/transport/sockets.hpp"

namespace spark::cli {
namespace {

constexpr std::uint16_t kPort = 7789;
// A daemon starts the process that serves peers again, and asks its peers every 5 s.
constexpr Duration kServing{15'000}, kAnswering{12'000}, kPause{500};

Result<FleetHere::Peer> parse_peer(const std::string& text, std::uint16_t port) {
  const std::size_t equals = text.find('=');
  const std::string address = equals == std::string::npos ? text : text.substr(equals + 1);
  const auto portal = config::parse_portal(address, port);
  if (!portal) return fail_with(portal.error(), "peer " + printable(text));
  std::string name = equals == std::string::npos ? portal->address : text.substr(0, equals);
  std::ranges::replace(name, ':', '-');  // of an IPv6 address
  if (!config::is_name(name))
    return fail(Errc::Invalid, "peer " + printable(text) + ": " + printable(name) + " can't be its name",
                "write NAME=ADDRESS");
  return FleetHere::Peer{name, *portal};
}

// What the file says, or none if it is not there.
Result<std::string> text_of(const std::string& file) {
  auto text = read_file(file);
  if (!text && text.error().kind == Errc::NotFound) return std::string();
  return text;
}

// The address of the card that leads to the first peer, unless one is given or in the configuration.
Result<nvmetcp::Portal> address_to_listen(const JoinOptions& options, const config::FleetSettings& there) {
  if (!options.listen.empty()) {
    auto portal = config::parse_portal(options.listen, kPort);
    if (portal && fleet::is_address(portal->address)) return portal;
    return fail(Errc::Invalid,
                "--listen " + printable(options.listen) + ": it is no IP address of this host");
  }
  if (!there.listen.empty()) return there.listen.front();
  if (options.peers.empty())
    return fail(
        Errc::Invalid, "which address of this host do the others reach?",
        "name another host, whose route tells: `spark-stage fleet join 10.0.0.2`, or give --listen ADDRESS");
  const auto peer = parse_peer(options.peers.front(), kPort);
  if (!peer) return peer.take_error();
  const auto own = fleet::address_towards({peer->address.address, peer->address.port});
  if (!own) return own.take_error();
  return nvmetcp::Portal{*own, kPort};
}

// A peer that is in the configuration has its name there.
void use_names(FleetHere& fleet, const config::FleetSettings& settings) {
  for (FleetHere::Peer& peer : fleet.peers)
    for (const auto& [name, addresses] : settings.peers)
      if (std::ranges::find(addresses, peer.address) != addresses.end()) peer.name = name;
}

Result<FleetHere> wanted_fleet(const Context& context, const JoinOptions& options,
                               const config::FleetSettings& there) {
  FleetHere fleet;
  const auto listen = address_to_listen(options, there);
  if (!listen) return listen.take_error();
  fleet.listen = *listen;
  fleet.key_file = there.key_file;
  if (there.listen.empty()) {
    const auto file = absolute_path(context.config_file);
    if (!file) return file.take_error();
    fleet.key_file = file->parent_path() / "keys/fleet";
  }
  for (const std::string& text : options.peers) {
    auto peer = parse_peer(text, listen->port);
    if (!peer) return peer.take_error();
    const bool is_this_host = !fleet::interface_of(peer->address.address).empty();
    if (is_this_host)
      return fail(Errc::Invalid, "peer " + printable(text) + " is this host", "name the other hosts");
    fleet.peers.push_back(std::move(*peer));
  }
  return fleet;
}

Result<std::string> given_key(Context& context, const std::string& file) {
  std::string text;
  if (file == "-") {
    text.assign(std::istreambuf_iterator<char>(context.in), {});
  } else {
    constexpr std::size_t kMost = 4096;
    auto read = read_regular_file(file, kMost);
    if (!read) return read.take_error();
    text = std::move(*read);
  }
  auto key = fleet::parse_key(text);
  if (!key)
    return fail_with(key.error(),
                     "reading the key from " + (file == "-" ? "the standard input" : printable(file)));
  return key;
}

// True if a new key was made, which no other host can have.
Result<bool> settle_key(Context& context, const std::filesystem::path& file, const std::string& from) {
  const auto given = from.empty() ? Result<std::string>(std::string()) : given_key(context, from);
  if (!given) return given.take_error();
  std::error_code unknown;
  if (std::filesystem::exists(file, unknown)) {
    const auto there = fleet::read_key(file);
    if (!there) return there.take_error();
    if (given->empty() || *given == *there) return false;
    return fail(Errc::Refused,
                printable(file.native()) + " has another key than the one given: a fleet has one",
                "if this host leaves its old fleet, delete " + printable(file.native()) + " first");
  }
  const auto key = given->empty() ? fleet::new_key() : given;
  if (!key) return key.take_error();
  ::mkdir(file.parent_path().c_str(), 0700);  // a failure is that of the file
  if (auto written = write_new_file(file, *key + "\n", 0600); !written) return written.take_error();
  say(context, (given->empty() ? "made the key " : "took the key as ") + printable(file.native()));
  if (!given->empty() && from != "-") say(context, "delete " + printable(from) + ", which is a copy of it");
  return given->empty();
}

// With its owner and mode; a symbolic link stays one.
Result<> replace_text(const std::string& file, const std::string& text) {
  std::error_code unknown;
  const auto real = std::filesystem::weakly_canonical(file, unknown);
  const std::filesystem::path path = unknown ? std::filesystem::path(file) : real;
  struct stat info {};
  const bool is_there = ::stat(path.c_str(), &info) == 0;
  if (auto written = write_file_atomically(path, text, is_there ? info.st_mode & 0777 : 0644); !written)
    return written;
  if (is_there && ::chown(path.c_str(), info.st_uid, info.st_gid) != 0)
    return fail_errno(errno, "keeping the owner of " + printable(path.native()));
  return {};
}

// By which the other hosts know it.
std::string own_name() {
  char name[256] = "";
  const bool is_known = ::gethostname(name, sizeof name - 1) == 0;
  const std::string first = std::string(name).substr(0, std::string(name).find('.'));
  return is_known && config::is_name(first) ? first + "=" : "";
}

// The next steps on the other hosts.
void tell_others(Context& context, const FleetHere& fleet) {
  const std::string own =
      own_name() + (fleet.listen.port == kPort ? fleet.listen.address : to_string(fleet.listen));
  const std::string other = fleet.peers.empty() ? "HOST" : fleet.peers.front().address.address;
  const std::string key = printable(fleet.key_file.native());
  context.out << "\nOn each other host, with this key in a file that nobody else can read:\n\n"
              << "  sudo cat " << key << " | ssh " << other << " 'umask 077; cat > fleet.key'\n"
              << "  ssh -t " << other << " sudo spark-stage fleet join " << own << " --key-file fleet.key\n\n"
              << "Then here, to test the link: sudo spark-stage fleet test\n";
  if (fleet.peers.empty())
    context.out << "First tell this host who the others are: sudo spark-stage fleet join ADDRESS…\n";
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
  const json::array* peers = fleet == nullptr ? nullptr : get_array(*fleet, "peers");
  if (peers == nullptr || !get_bool(*fleet, "serving").value_or(false)) return false;
  return std::ranges::all_of(wanted.peers, [&](const FleetHere::Peer& peer) {
    return std::ranges::any_of(*peers, [&](const json::value& one) {
      const json::object* row = one.if_object();
      return row != nullptr && get_string(*row, "name") == peer.name &&
             (!answering || get_bool(*row, "answers").value_or(false));
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

// Until the peer answers; the last reason if it does not.
Result<> wait_for_peer(Context& context, const doctor::LinkMeter& meter, const FleetHere::Peer& peer) {
  const fleet::Endpoint at{peer.address.address, peer.address.port};
  for (const SteadyTime end = context.timer.steady() + kAnswering;; context.timer.sleep(kPause)) {
    const auto seen = meter.look(at);
    if (seen || seen.error().kind == Errc::Unsupported) return {};
    const bool is_final = seen.error().kind == Errc::Denied || context.timer.steady() >= end || context.stop;
    if (is_final) return fail_with(seen.error(), "peer " + peer.name + " at " + to_string(peer.address));
  }
}

Result<int> test(Context& context, const FleetHere& fleet) {
  if (auto served = wait_until_served(context, fleet, false); !served) return served.take_error();
  const doctor::Host host = this_host(context);
  if (!host.config) return host.config.take_error();
  const doctor::LinkMeter meter = link_meter(context, host, false);
  if (meter.error) return fail(*meter.error);
  std::vector<std::string> names;
  for (const FleetHere::Peer& peer : fleet.peers) {
    if (auto answers = wait_for_peer(context, meter, peer); !answers) {
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
  print_links(context.out, context.terminal, to_json(report));
  print_findings(context.out, context.terminal, to_json(report));
  return report.count(doctor::Level::Wrong) > 0 ? 1 : 0;
}

}  // namespace

Result<int> join_fleet(Context& context, const JoinOptions& options) {
  if (!context.is_root)
    return fail(Errc::Denied, "joining a fleet: only root may", "run `sudo spark-stage fleet join`");
  const auto text = text_of(context.config_file);
  if (!text) return text.take_error();
  const auto before =
      text->empty() ? Result<config::Config>(config::Config{}) : config::load(context.config_file);
  if (!before) return before.take_error();
  auto fleet = wanted_fleet(context, options, before->fleet);
  if (!fleet) return fleet.take_error();
  use_names(*fleet, before->fleet);
  const auto with = with_fleet(*text, context.config_file, *fleet);
  if (!with) return with.take_error();
  const auto is_new = settle_key(context, fleet->key_file, options.key_file);
  if (!is_new) return is_new.take_error();
  if (*with != *text) {
    if (auto written = replace_text(context.config_file, *with); !written) return written.take_error();
    say(context, "wrote the section `fleet` into " + printable(context.config_file));
  }
  const std::string card = fleet::interface_of(fleet->listen.address);
  const auto nics = read_nics(context.root);
  const Nic* nic = find_nic(nics, card);
  say(context, "this host is reached at " + to_string(fleet->listen) +
                   (card.empty() ? "" : ", " + card + (nic == nullptr ? "" : ", " + speed_of(*nic))));
  auto reloaded = reload(context);
  const bool is_alone = *is_new || fleet->peers.empty();
  if (is_alone) tell_others(context, *fleet);
  if (!reloaded) return reloaded.take_error();
  if (is_alone) return 0;
  return test(context, *fleet);
}

}  // namespace spark::cli
