// The drive of the staged copies: free space, features of its file system, its health.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/file_system.hpp"
#include "base/kernel/mount_table.hpp"
#include "base/text.hpp"
#include "doctor/checks/controller_of.hpp"
#include "doctor/checks/host.hpp"
#include "nvmetcp/device/smart.hpp"

namespace spark::doctor {
namespace {

constexpr char kCacheArea[] = "cache";
constexpr unsigned kWornOut = 90;  // per cent

// The folder, or the nearest one above it that is there. May block, as all that looks at the drive.
std::filesystem::path existing_folder(std::filesystem::path folder) {
  std::error_code ignored;
  while (folder.has_relative_path() && !std::filesystem::exists(folder, ignored))
    folder = folder.parent_path();
  return folder;
}

// EINVAL: the file system refuses it. Any other failure (no right to write, no unnamed files) tells nothing.
bool refuses_direct_io(const std::filesystem::path& folder) {
  const UniqueFd fd(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_DIRECT | O_CLOEXEC, 0600));
  return !fd && errno == EINVAL;
}

// spark-staged closes them (mode 0700) at each start.
constexpr char kClosed[] = ".trash", kClosedState[] = "/var/lib/spark-stage/stage-outs";

bool is_open_to_others(const std::filesystem::path& folder) {
  struct stat info {};
  return ::lstat(folder.c_str(), &info) == 0 && (info.st_mode & 077) != 0;
}

Result<json::object> look_at(const std::filesystem::path& cache, const SystemRoot& root) {
  const std::filesystem::path folder = existing_folder(cache);
  struct statvfs room {};
  if (::statvfs(folder.c_str(), &room) != 0)
    return fail_errno(errno, "asking for the room in " + folder.native());
  return json::object{{"total", Bytes{room.f_blocks} * room.f_frsize},
                      {"free", Bytes{room.f_bavail} * room.f_frsize},
                      {"refuses_direct_io", refuses_direct_io(folder)},
                      {"is_open_to_others", is_open_to_others(folder / kClosed)},
                      {"is_state_open", is_open_to_others(root / (kClosedState + 1))}};
}

Bytes in_bytes(const config::Amount& amount, Bytes total) {
  return amount.percent > 0 ? static_cast<Bytes>(static_cast<double>(total) * amount.percent / 100)
                            : amount.bytes;
}

void check_room(const Host& host, const json::object& seen, const std::string& type, Report& report) {
  const auto total = get_count(seen, "total");
  const auto free = get_count(seen, "free");
  const Bytes kept = in_bytes(host.settings().cache.keep_free, total);
  const std::string path = printable(host.settings().cache.path.native());
  if (free <= kept) {
    report.wrong(kCacheArea,
                 format_bytes(free) + " is free where the cache is (" + path +
                     "), and keep_free holds back " + format_bytes(kept),
                 "nothing can be staged",
                 "spark-stage ls, then: spark-stage evict DATASET; or: sudo du -xh --max-depth=2 "
                 "/ | sort -h | tail");
  }
  if (get_bool(seen, "refuses_direct_io").value_or(false)) {
    report.note(kCacheArea, path + " is on a file system (" + printable(type) + ") that refuses direct I/O",
                "copies go through the page cache, which is the GPU's memory on a Spark",
                "put `cache: {path: …}` on ext4 or xfs");
  }
  if (get_bool(seen, "is_open_to_others").value_or(false)) {
    report.note(
        kCacheArea,
        "other users can open " + path + "/" + kClosed + ", which spark-staged closes: its file system (" +
            printable(type) + ") does not keep modes",
        "any user can read unfinished and evicted copies, and lock the cache, which stops all stagings",
        "put `cache: {path: …}` on ext4 or xfs");
  }
  if (get_bool(seen, "is_state_open").value_or(false)) {
    report.note(kCacheArea,
                "other users can open " + std::string(kClosedState) +
                    ", which spark-staged closes: its file system does not keep modes",
                "any user can read what is recorded there, and lock the catalog of the copies",
                "put /var/lib/spark-stage on ext4 or xfs");
  }
}

void check_health(const Host& host, const std::string& controller, Report& report) {
  if (controller.empty()) return;
  if (!host.is_root) {
    report.unknown.push_back("health of the cache's drive (needs root)");
    return;
  }
  const auto answer = host.bounded([&]() -> Result<json::object> {
    const auto smart = nvmetcp::read_smart(controller);
    if (!smart) return smart.take_error();
    return json::object{{"warnings", join(smart->critical, ", ")}, {"used", smart->used_percent}};
  });
  if (!answer) {
    report.unknown.push_back("health of the cache's drive (" + answer.error().what + ")");
    return;
  }
  const std::string details = "sudo apt install nvme-cli; sudo nvme smart-log /dev/" + controller;
  if (const auto warnings = get_string(*answer, "warnings"); warnings && !warnings->empty()) {
    report.wrong(kCacheArea, "the cache's drive " + controller + " warns: " + *warnings,
                 "it may fail, or lose written data", details);
  } else if (const auto used = get_int(*answer, "used").value_or(0); used >= kWornOut) {
    report.note(kCacheArea,
                "the cache's drive " + controller + " has used " + std::to_string(used) +
                    " % of the writes that it was made for",
                "it may soon fail", details);
  }
}

}  // namespace

// The daemon's own word: the drive may be another one than its catalog knows.
void check_problem(const Host& host, Report& report) {
  const auto status = host.ask_daemon();
  if (!status) return;  // the check of the daemon has reported that
  if (const auto problem = get_string(*status, "cache_problem"))
    report.wrong(kCacheArea, "the cache can't be used: " + printable(*problem),
                 "nothing can be staged, and no copy is served",
                 "findmnt -T " + printable(host.settings().cache.path.native()));
}

void check_cache_drive(const Host& host, Report& report) {
  const std::size_t before = report.findings.size();
  check_problem(host, report);
  const std::filesystem::path folder = host.root / host.settings().cache.path.relative_path().native();
  const auto seen = host.bounded([&] { return look_at(folder, host.root); });
  if (!seen) {
    report.wrong(kCacheArea, printable(folder.native()) + " can't be looked at: " + seen.error().what,
                 "nothing can be staged", "findmnt -T " + printable(folder.native()));
    return;
  }
  const auto table = mounts::read_mount_table(host.root);
  const mounts::Mount* mount = table ? mounts::carrier_of(*table, host.settings().cache.path) : nullptr;
  check_room(host, *seen, mount == nullptr ? "unknown" : mount->type, report);
  if (mount != nullptr) {
    const std::string device = device_text(mount->device_number);
    check_health(host, controller_of((host.root / "sys").native(), device), report);
  }
  const auto free = get_count(*seen, "free");
  report.fine_since(before, "cache drive (" + format_bytes(free) + " free" +
                                (mount == nullptr ? "" : ", " + printable(mount->type)) + ")");
}

}  // namespace spark::doctor
