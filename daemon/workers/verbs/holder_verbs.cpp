// Holders of leases: schedulers' jobs and users.
#include <pwd.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "base/text.hpp"
#include "daemon/workers/verbs/verbs.hpp"
#include "staging/leases/scheduler_job.hpp"

namespace spark::workers {

// {} → {"slurm": [ID…]}: jobs that have a process on this host
Result<json::object> jobs_here_verb(const json::object& /*request*/, const ProgressLine& /*progress*/) {
  const auto jobs = staging::slurm_jobs_here(SystemRoot{});
  if (!jobs) return jobs.take_error();
  json::array ids;
  for (const std::string& id : *jobs) ids.emplace_back(id);
  return json::object{{"slurm", std::move(ids)}};
}

// {"user"} → {"uid"}. May query a directory server.
Result<json::object> user_verb(const json::object& request, const ProgressLine& /*progress*/) {
  const std::string user = get_string(request, "user").value_or("");
  std::vector<char> text(1 << 16);
  passwd entry{};
  passwd* found = nullptr;
  const int error = ::getpwnam_r(user.c_str(), &entry, text.data(), text.size(), &found);
  if (error != 0) return fail_errno(error, "looking for user " + printable(user));
  if (found == nullptr) return fail(Errc::NotFound, "no user " + printable(user) + " on this host");
  return json::object{{"uid", std::uint64_t{entry.pw_uid}}};
}

}  // namespace spark::workers
