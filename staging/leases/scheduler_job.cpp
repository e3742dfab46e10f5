#include "staging/leases/scheduler_job.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>

#include "base/file.hpp"
#include "base/text.hpp"

namespace spark::staging {
namespace {

constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kStepDaemon = "slurmstepd";

bool is_process(const std::string& name) {
  return !name.empty() && name.find_first_not_of(kDigits) == std::string::npos;
}

// "slurmstepd: [123.batch]" → "123"; a step of a heterogeneous job is "123+1.0" or "123.0+1".
std::optional<std::string> job_in(const std::string& command_line) {
  const std::string begin = std::string(kStepDaemon) + ": [";
  if (!command_line.starts_with(begin)) return std::nullopt;
  const std::size_t end = command_line.find_first_not_of(kDigits, begin.size());
  if (end == begin.size() || end == std::string::npos || command_line[end] == '\0') return std::nullopt;
  return command_line.substr(begin.size(), end - begin.size());
}

}  // namespace

Result<> check_job_id(std::string_view system, std::string_view id) {
  constexpr std::string_view kAllowed = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_+.-";
  const bool is_volume = system == kCsi;
  const std::size_t longest = is_volume ? 128 : 64;
  const std::string_view allowed = kAllowed.substr(0, kAllowed.size() - (is_volume ? 0 : 1));
  if (!id.empty() && id.size() <= longest && id.find_first_not_of(allowed) == std::string_view::npos)
    return {};
  if (is_volume) {
    return fail(Errc::Invalid, "'" + printable(id.substr(0, longest)) + "' is not the ID of a volume",
                "an ID has up to 128 letters, digits, '_', '+', '.' and '-'");
  }
  return fail(Errc::Invalid, "'" + printable(id.substr(0, longest)) + "' is not the id of a job",
              "an id has up to 64 letters, digits, '_', '+' and '.'");
}

std::string in_words(const SchedulerJob& job) {
  if (job.system == kCsi) return job.user.empty() ? "volume " + job.id : "pod " + printable(job.user);
  return job.system + " job " + job.id + (job.user.empty() ? "" : " (" + printable(job.user) + ")");
}

Result<std::set<std::string>> slurm_jobs_here(const SystemRoot& root) {
  std::error_code error;
  std::set<std::string> jobs;
  for (const std::filesystem::path& process : list_folder(root / "proc", error)) {
    if (!is_process(process.filename().native())) continue;
    // Checks the program's name first: a command line is read from the process's own memory, and that waits
    // while another thread changes the memory map. A process that ends meanwhile has no file any more.
    const auto name = read_line_file(process / "comm");
    if (!name || *name != kStepDaemon) continue;
    const auto command_line = read_file(process / "cmdline");
    if (auto job = command_line ? job_in(*command_line) : std::nullopt) jobs.insert(std::move(*job));
  }
  if (error) return fail_errno(error.value(), "listing the processes in " + (root / "proc").native());
  return jobs;
}

}  // namespace spark::staging
