#include "staging/leases/lease.hpp"

#include <sys/stat.h>

#include <cerrno>

#include "base/file.hpp"
#include "base/text.hpp"
#include "staging/manifest/names.hpp"

namespace spark::staging {
namespace {

// Slurm puts each step of a job into a group of its own below the job's:
// system.slice/slurmstepd.scope/job_7/step_0/… (cgroup/v2 plugin). A step's lease is for the whole job,
// because the next steps need the dataset too.
std::filesystem::path job_of(const std::filesystem::path& group) {
  std::filesystem::path job;
  for (const std::filesystem::path& part : group) {
    job /= part;
    const std::string& name = part.native();
    constexpr std::string_view kJob = "job_";
    const bool is_job = name.starts_with(kJob) && name.size() > kJob.size() &&
                        name.find_first_not_of("0123456789", kJob.size()) == std::string::npos;
    if (is_job) return job;
  }
  return group;
}

// The object no longer exists; any other failure is inconclusive.
bool is_gone(const Error& error) {
  return error.number == ENOENT || error.number == ESRCH || error.number == ENODEV;
}

bool is_of_this_boot(const SchedulerJob& job) {
  static const std::string boot = boot_id(SystemRoot{});  // constant while this process runs
  return job.boot.empty() || boot.empty() || job.boot == boot;
}

}  // namespace

std::string prefetch_lease_id(const std::string& dataset) {
  return "prefetch:" + folder_name(dataset);
}

bool is_populated(const Cgroup& cgroup) {
  struct stat info {};
  if (::stat(cgroup.path.c_str(), &info) != 0) return errno != ENOENT && errno != ENODEV;
  if (info.st_ino != cgroup.id) return false;
  const auto events = read_file(cgroup.path / "cgroup.events");
  if (!events) return !is_gone(events.error());
  for (const std::string& line : split(*events, '\n')) {
    if (line == "populated 0") return false;
  }
  return true;
}

bool is_live(const Lease& lease, WallTime now) {
  if (lease.expires && *lease.expires <= now) return false;
  return is_running(lease.process) && (lease.cgroup.path.empty() || is_populated(lease.cgroup)) &&
         is_of_this_boot(lease.job);
}

std::string job_lease_id(const SchedulerJob& job, const std::string& dataset) {
  return std::string(kJobLease) + job.key() + ":" + folder_name(dataset);
}

Result<Cgroup> cgroup_of(const SystemRoot& root, pid_t pid) {
  const std::string doing = "looking for the control group of process " + std::to_string(pid);
  const auto lines = read_file(root / ("proc/" + std::to_string(pid) + "/cgroup"));
  if (!lines) return fail_with(lines.error(), doing);
  for (const std::string& line : split(*lines, '\n')) {
    constexpr std::string_view kUnified = "0::/";
    if (!line.starts_with(kUnified)) continue;
    const std::string below = line.substr(kUnified.size());
    if (below.empty()) {
      return fail(Errc::Invalid, doing + ": it is in the root group, which never ends",
                  "lease by a process or by a time");
    }
    Cgroup cgroup;
    cgroup.path = root / "sys/fs/cgroup" / job_of(below);
    struct stat info {};
    if (::stat(cgroup.path.c_str(), &info) != 0) {
      return fail_errno(errno, doing + ": looking at " + printable(cgroup.path.native()));
    }
    cgroup.id = info.st_ino;
    return cgroup;
  }
  return fail(Errc::Unsupported, doing + ": this system has no control groups of version 2",
              "lease by a process or by a time");
}

}  // namespace spark::staging
