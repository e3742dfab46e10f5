#include "bench/measure/bench_target.hpp"

#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <numeric>

#include "base/file.hpp"
#include "base/file_system.hpp"
#include "base/text.hpp"
#include "bench/facts/mount_facts.hpp"
#include "bench/facts/storage_facts.hpp"
#include "bench/facts/temperature.hpp"
#include "bench/files/existing_files.hpp"
#include "bench/files/file_reader.hpp"
#include "bench/fio/fio_job.hpp"
#include "bench/measure/plan.hpp"

namespace spark::bench {

// What a child finds out about a path.
struct PathLook {
  std::string folder;
  std::uint64_t device = 0;
  std::string space;
  Bytes size = 0, free = 0;
  std::string read_only_reason;
  std::vector<DataFile> files;
  std::vector<std::string> notes;
};
SPARK_MESSAGE(PathLook, (folder, device, space, size, free, read_only_reason, files, notes));

namespace {

constexpr Duration kAnswerTime{20'000};
constexpr Duration kRemoveTime{30'000};
constexpr double kSlowestFiles = 20;  // per second
constexpr const char* kNoDirect =
    "its file system refuses direct I/O (O_DIRECT), and through the page cache "
    "this would measure memory";

Result<PathLook> refuse_what_is_no_folder(const std::string& path, mode_t mode) {
  if (S_ISBLK(mode) || S_ISCHR(mode)) {
    return fail(Errc::Refused, path + " is a device: the benchmark works only inside folders",
                "mount it and give a folder of the mount");
  }
  return fail(Errc::Invalid, path + " is not a folder", "give a folder to measure in");
}

// Identifies the file system whose space the folder shares. On btrfs each subvolume has a device number of
// its own.
std::string space_of(const std::string& folder, std::uint64_t device) {
  struct statfs status {};
  if (::statfs(folder.c_str(), &status) != 0 || status.f_type != BTRFS_SUPER_MAGIC)
    return device_text(device);
  const UniqueFd opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  btrfs_ioctl_fs_info_args facts{};
  if (!opened || ::ioctl(opened.get(), BTRFS_IOC_FS_INFO, &facts) != 0) return device_text(device);
  std::string identity = "btrfs";
  for (const unsigned byte : facts.fsid) identity += " " + std::to_string(byte);
  return identity;
}

// Runs in a child; finds no files.
Result<PathLook> look_at(const std::string& path) {
  const std::string shown = printable(path);
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return fail_errno(errno, "looking at " + shown);
  if (!S_ISDIR(status.st_mode)) return refuse_what_is_no_folder(shown, status.st_mode);
  const std::unique_ptr<char, void (*)(void*)> resolved(::realpath(path.c_str(), nullptr), std::free);
  if (!resolved) return fail_errno(errno, "resolving " + shown);
  PathLook look;
  look.folder = resolved.get();
  look.device = status.st_dev;
  look.space = space_of(look.folder, look.device);
  if (!fio_filename(look.folder + "/x")) {
    return fail(Errc::Invalid,
                "fio can't work in " + printable(look.folder) + ": the name holds '#', ';' or '\\'",
                "give the folder another name, or bind-mount it under one");
  }
  struct statvfs space {};
  if (::statvfs(look.folder.c_str(), &space) != 0)
    return fail_errno(errno, "asking " + shown + " for its free space");
  look.size = static_cast<Bytes>(space.f_blocks) * space.f_frsize;
  look.free = static_cast<Bytes>(space.f_bavail) * space.f_frsize;
  if ((space.f_flag & ST_RDONLY) != 0) {
    look.read_only_reason = "mounted read-only";
  } else if (::faccessat(AT_FDCWD, look.folder.c_str(), W_OK | X_OK, AT_EACCESS) != 0) {
    look.read_only_reason = errno == EROFS ? "mounted read-only" : "no permission to write";
  }
  if (look.read_only_reason.empty()) look.notes = sweep_leftovers(look.folder, ::time(nullptr));
  return look;
}

// Unsupported if the file system rejects direct I/O on the file. Reads one block if the file has one.
Result<> try_direct(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
  if (!file && errno == EINVAL) return fail(Errc::Unsupported, kNoDirect);
  if (!file) return fail_errno(errno, "opening " + printable(path));
  const PageBuffer buffer = make_page_buffer(4096);
  if (::pread(file.get(), buffer.get(), 4096, 0) >= 0) return {};
  if (errno == EINVAL) return fail(Errc::Unsupported, kNoDirect);
  return fail_errno(errno, "reading " + printable(path));
}

// Runs in a child; the data files don't exist yet.
Result<PathLook> open_scratch(const std::string& folder, const Owner& owner) {
  if (auto made = make_scratch(folder, owner); !made) return made.take_error();
  auto direct = try_direct(folder + "/" + kScratchMarker);
  if (!direct) return direct.take_error();
  return PathLook();
}

// Runs in a child.
Result<PathLook> open_existing(const std::string& folder) {
  FoundFiles found = find_files(folder, {});
  PathLook look;
  if (found.sparse > 0) {
    look.notes.push_back(std::to_string(found.sparse) +
                         " sparse files were passed over: holes cost no storage");
  }
  if (!found.complete) {
    look.notes.push_back("looked at " + std::to_string(found.entries) +
                         " entries only: there may be larger files deeper down");
  }
  if (found.files.empty()) {
    return fail(Errc::NotFound, "it may not be written, and holds no file of at least 4 KiB to read");
  }
  auto direct = try_direct(found.files.front().path);
  if (!direct) return direct.take_error();
  look.files = std::move(found.files);
  return look;
}

bool is_for_the_user(Errc kind) {
  return kind == Errc::NotFound || kind == Errc::Invalid || kind == Errc::Refused || kind == Errc::Denied ||
         kind == Errc::Cancelled;
}

}  // namespace

BenchTarget::BenchTarget(const PathUnderTest& path) {
  record.name = path.name;
  record.path = path.path;
}

Result<BenchTarget> BenchTarget::inspect(const PathUnderTest& path, const SystemRoot& root,
                                         const StopFlag& stop) {
  BenchTarget target(path);
  const auto options = on_path("looking at " + printable(path.path), kAnswerTime, &stop);
  auto look = run_apart(options, [&] { return look_at(path.path); });
  if (!look && is_for_the_user(look.error().kind)) return look.take_error();
  if (!look) {
    target.record.unusable = look.error().message();
    return target;
  }
  target.record.folder = look->folder;
  target.record.size = look->size;
  target.record.free = look->free;
  target.record.read_only_reason = look->read_only_reason;
  target.record.notes = look->notes;
  target.device = look->device;
  target.space = look->space;
  target.read_facts(root);
  // The datasets of a ZFS pool share its space.
  if (const auto& mount = target.record.mount; mount && mount->type == "zfs")
    target.space = "zfs " + mount->source.substr(0, mount->source.find('/'));
  return target;
}

void BenchTarget::read_facts(const SystemRoot& root) {
  const auto table = mounts::read_mount_table(root);
  if (table) record.mount = find_mount(*table, record.folder, device);
  if (record.mount) record.storage = read_storage_facts(root, *record.mount, device);
}

void BenchTarget::open(const Owner& owner, const Layout& layout, const StopFlag& stop) {
  const auto options = on_path("preparing " + printable(record.folder), kAnswerTime, &stop);
  const bool writable = is_writable();
  if (writable) {
    scratch_.folder = (record.folder == "/" ? "" : record.folder) + "/" + new_scratch_name();
  }
  const SmallWork dataset{layout.dataset, {}, {}, 0, {}};
  const std::string& existing = dataset.is_in(record.folder) ? layout.dataset : record.folder;
  const auto look = run_apart(
      options, [&] { return writable ? open_scratch(scratch_.folder, owner) : open_existing(existing); });
  if (!look) {
    record.unusable = look.error().message();
    return;
  }
  record.files = look->files;
  record.notes.insert(record.notes.end(), look->notes.begin(), look->notes.end());
  const bool has_small = !layout.small.sizes.empty();
  if (has_small && layout.small.is_in(record.folder)) take_small_work(layout.small);
  if (!writable) return;
  for (unsigned i = 0; i < kLargeFiles; ++i) {
    const std::string number = i == 0 ? "" : std::to_string(i);
    record.files.push_back({scratch_.folder + "/" + kScratchData + number, layout.size / kLargeFiles});
  }
  if (has_small && small_files.empty()) make_small_files_in(layout, stop);
}

void BenchTarget::take_small_work(const SmallWork& work) {
  for (const DataFile& file : work.files) small_files.push_back(file.path);
  window = work.window;
  copy_sample = work.copy;
  record.small_files = work.sizes.size();
  record.small_bytes = std::accumulate(work.sizes.begin(), work.sizes.end(), Bytes{0});
}

void BenchTarget::make_small_files_in(const Layout& layout, const StopFlag& stop) {
  const SmallWork& work = layout.small;
  const std::string folder = scratch_.folder + "/" + kScratchSmall;
  const auto count = static_cast<double>(work.sizes.size());
  const double paced = layout.rate > 0 ? count * kLargestSmallFile / static_cast<double>(layout.rate) : 0;
  const Duration deadline =
      kAnswerTime + Duration(static_cast<std::int64_t>((count / kSlowestFiles + paced) * 1000));
  const auto options = on_path("making small files in " + printable(record.folder), deadline, &stop);
  const auto made = run_apart(options, [&] {
    const auto own = record.storage.kind == PathKind::Nas ? Delegations::GiveBack : Delegations::None;
    return make_small_files(folder, work.sizes, layout.rate, own);
  });
  if (!made) {
    record.unusable = made.error().message();
    return;
  }
  take_small_work(work);
  small_files = small_file_names(folder, work.sizes.size());
  copy_sample = {folder, {{folder, record.small_bytes}}};
}

Delegations BenchTarget::delegations() const {
  if (record.storage.kind != PathKind::Nas) return Delegations::None;
  const bool are_own = !scratch().empty() && !small_files.empty() && small_files[0].starts_with(scratch());
  return are_own ? Delegations::GiveBack : Delegations::Avoid;
}

void BenchTarget::look_at_heat(const SystemRoot& root) {
  const auto now = drive_temperature(root, record.storage);
  if (now && (!hottest || now->celsius > hottest->celsius)) hottest = now;
}

Result<> BenchTarget::close() {
  const std::string folder = std::exchange(scratch_.folder, {});
  if (folder.empty()) return {};
  const auto options = on_path("removing the benchmark's folder " + printable(folder), kRemoveTime, nullptr);
  return run_apart(options, [&] { return remove_scratch(folder); });
}

// The folder is still open here only if a run ends with an error, and that error is reported instead.
BenchTarget::~BenchTarget() {
  (void)close();
}

Result<> check_space(const std::vector<BenchTarget>& targets, Bytes size) {
  for (const BenchTarget& target : targets) {
    if (!target.is_usable() || !target.is_writable()) continue;
    Bytes needed = 0;
    for (const BenchTarget& other : targets) {
      if (other.is_usable() && other.is_writable() && other.space == target.space) needed += size;
    }
    const Bytes reserve = target.record.size / 20;
    if (target.record.free >= needed + reserve) continue;
    return fail(Errc::NoSpace,
                "the benchmark would write " + format_bytes(needed) + " to the file system of " +
                    printable(target.record.folder) + ", which has " + format_bytes(target.record.free) +
                    " of " + format_bytes(target.record.size) + " free, and 5 % of it has to stay free",
                "free some space, or choose a smaller --size");
  }
  return {};
}

}  // namespace spark::bench
