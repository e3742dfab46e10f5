#include "daemon/service/staging_request.hpp"

#include <limits>

#include "base/file.hpp"

namespace spark {
namespace {

using api::Request;

constexpr std::size_t kMostNames = 1000;

std::string describe_holder(const api::Caller& caller, pid_t pid) {
  const pid_t holder = pid != 0 ? pid : caller.pid;
  const auto name = read_line_file("/proc/" + std::to_string(holder) + "/comm");
  return "pid " + std::to_string(holder) + (name ? " (" + *name + ")" : "") + ", uid " +
         std::to_string(caller.uid);
}

// Whom a lease ends with: "hold" is true (the caller), a process's number, or "cgroup" (the caller's).
Result<> read_hold(datasets::StageRequest& wanted, const Request& request) {
  const json::value* hold = request.body.if_contains("hold");
  if (hold == nullptr || *hold == false) return {};
  if (*hold == true) {
    wanted.process = staging::process_with(request.caller.pid);
  } else if (*hold == "cgroup") {
    auto group = staging::cgroup_of(SystemRoot{}, request.caller.pid);
    if (!group) return group.take_error();
    wanted.cgroup = std::move(*group);
  } else {
    const auto pid = get_int(request.body, "hold").value_or(0);
    if (pid <= 1 || pid > std::numeric_limits<pid_t>::max()) {
      return fail(Errc::Invalid, "hold is not true, \"cgroup\" or a process that can end",
                  "there is no lease for ever");
    }
    wanted.process = staging::process_with(static_cast<pid_t>(pid));
    if (wanted.process.start_time == 0)
      return fail(Errc::NotFound, "no process " + std::to_string(pid) + " to hold a lease for");
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> dataset_names(const json::object& body) {
  std::vector<std::string> names;
  const json::array* listed = get_array(body, "datasets");
  if (listed == nullptr) return names;
  if (listed->size() > kMostNames) {
    return fail(Errc::Invalid,
                "the request names " + std::to_string(listed->size()) + " datasets; at most " +
                    std::to_string(kMostNames) + " are taken at once",
                "ask for them in several requests");
  }
  for (const json::value& name : *listed) {
    if (!name.is_string()) return fail(Errc::Invalid, "a dataset's name is a string");
    names.emplace_back(name.get_string());
  }
  return names;
}

Result<datasets::StageRequest> read_staging(const Request& request) {
  datasets::StageRequest wanted;
  auto names = dataset_names(request.body);
  if (!names) return names.take_error();
  wanted.datasets = std::move(*names);
  if (const auto seconds = get_int(request.body, "lease_s")) {
    // Ten years: far enough for anybody, near enough for every clock.
    if (*seconds <= 0 || *seconds > 10LL * 366 * 86400) {
      return fail(Errc::Invalid, "lease_s is not a lease's length in seconds", "there is no lease for ever");
    }
    wanted.lease = std::chrono::seconds(*seconds);
  }
  if (const auto rate = get_int(request.body, "max_rate")) {
    if (*rate <= 0) return fail(Errc::Invalid, "max_rate is not a rate in bytes per second");
    wanted.max_rate = static_cast<Bytes>(*rate);
  }
  wanted.allow_dirty = get_bool(request.body, "allow_dirty").value_or(false);
  if (auto held = read_hold(wanted, request); !held) return held.take_error();
  wanted.holder = describe_holder(request.caller, wanted.process.pid);
  return wanted;
}

}  // namespace spark
