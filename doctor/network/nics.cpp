#include "doctor/network/nics.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace spark::doctor {
namespace {

Result<json::array> ask_ip(const Host& host, std::vector<std::string> words) {
  words.insert(words.begin(), {"ip", "-json"});
  const auto output = host.run_tool(words);
  if (!output) return output.take_error();
  if (output->exit_status != 0) return fail(Errc::Unavailable, printable(trim(output->err)));
  const auto parsed = parse_json(output->out);
  if (!parsed || !parsed->is_array()) return fail(Errc::Failed, "`ip` did not answer with JSON");
  return parsed->get_array();
}

void add_networks(const Host& host, std::vector<Nic>& nics) {
  const auto answer = ask_ip(host, {"address", "show"});
  if (!answer) return;
  for (const json::value& link : *answer) {
    if (!link.is_object()) continue;
    const auto name = get_string(link.get_object(), "ifname");
    const auto nic =
        std::find_if(nics.begin(), nics.end(), [&](const Nic& n) { return name && n.name == *name; });
    if (nic == nics.end()) continue;
    for (const json::object& address : objects_in(link.get_object(), "addr_info")) {
      const auto local = get_string(address, "local");
      const auto length = get_int(address, "prefixlen");
      if (local && length) nic->networks.push_back(*local + "/" + std::to_string(*length));
    }
  }
}

}  // namespace

std::vector<Nic> list_nics(const Host& host) {
  auto nics = read_nics(host.root);
  add_networks(host, nics);
  return nics;
}

Result<Route> route_to(const Host& host, const std::string& address, const std::string& interface) {
  std::vector<std::string> words = {"route", "get", address};
  if (!interface.empty()) words.insert(words.end(), {"oif", interface});
  const auto answer = ask_ip(host, words);
  if (!answer) return answer.take_error();
  if (answer->empty() || !answer->front().is_object()) return fail(Errc::Unavailable, "no route");
  const json::object& route = answer->front().get_object();
  return Route{get_text(route, "dev"), get_text(route, "gateway")};
}

}  // namespace spark::doctor
