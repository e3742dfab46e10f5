#include "bench/measure/bench_target.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <numeric>

#include "base/file.hpp"
#include "base/text.hpp"
#include "bench/facts/mount_facts.hpp"
#include "bench/facts/storage_facts.hpp"
#include "bench/facts/temperature.hpp"
#include "bench/files/existing_files.hpp"
#include "bench/files/file_reader.hpp"
#include "bench/fio/fio_job.hpp"
#include "bench/measure/plan.hpp"

namespace spark::bench {
namespace {

constexpr Duration kAnswerTime{20'000};
constexpr Duration kRemoveTime{30'000};
constexpr double kSlowestFiles = 20;  // per second
constexpr const char* kNoDirect =
    "its file system refuses direct I/O (O_DIRECT), and through the page cache "
    "this would measure memory";

Result<json::value> refuse_what_is_no_folder(const std::string& path, mode_t mode) {
  if (S_ISBLK(mode) || S_ISCHR(mode)) {
    return fail(Errc::Refused, path + " is a device: the benchmark works only inside folders",
                "mount it and give a folder of the mount");
  }
  return fail(Errc::Invalid, path + " is not a folder", "give a folder to measure in");
}

// Runs in a child. {folder, device, size, free, read_only_reason, notes}
Result<json::value> look_at(const std::string& path) {
  const std::string shown = printable(path);
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return fail_errno(errno, "looking at " + shown);
  if (!S_ISDIR(status.st_mode)) return refuse_what_is_no_folder(shown, status.st_mode);
  const std::unique_ptr<char, void (*)(void*)> resolved(::realpath(path.c_str(), nullptr), std::free);
  if (!resolved) return fail_errno(errno, "resolving " + shown);
  const std::string folder = resolved.get();
  if (!fio_filename(folder + "/x")) {
    return fail(Errc::Invalid, "fio can't work in " + printable(folder) + ": the name holds '#', ';' or '\\'",
                "give the folder another name, or bind-mount it under one");
  }
  struct statvfs space {};
  if (::statvfs(folder.c_str(), &space) != 0)
    return fail_errno(errno, "asking " + shown + " for its free space");
  std::string read_only;
  if ((space.f_flag & ST_RDONLY) != 0) {
    read_only = "mounted read-only";
  } else if (::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) != 0) {
    read_only = errno == EROFS ? "mounted read-only" : "no permission to write";
  }
  json::array notes;
  if (read_only.empty()) {
    for (const std::string& note : sweep_leftovers(folder, ::time(nullptr))) notes.emplace_back(note);
  }
  return json::object{{"folder", folder},
                      {"device", status.st_dev},
                      {"size", static_cast<Bytes>(space.f_blocks) * space.f_frsize},
                      {"free", static_cast<Bytes>(space.f_bavail) * space.f_frsize},
                      {"read_only_reason", read_only},
                      {"notes", notes}};
}

// Unsupported if the file system rejects direct I/O on the file. Reads one block if the file has one.
Result<> try_direct(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
  if (!file && errno == EINVAL) return fail(Errc::Unsupported, kNoDirect);
  if (!file) return fail_errno(errno, "opening " + printable(path));
  const std::unique_ptr<void, void (*)(void*)> buffer(std::aligned_alloc(4096, 4096), std::free);
  if (::pread(file.get(), buffer.get(), 4096, 0) >= 0) return {};
  if (errno == EINVAL) return fail(Errc::Unsupported, kNoDirect);
  return fail_errno(errno, "reading " + printable(path));
}

// Runs in a child. {files: []}; the data file does not exist yet.
Result<json::value> open_scratch(const std::string& folder, const Owner& owner) {
  if (auto made = make_scratch(folder, owner); !made) return made.take_error();
  auto direct = try_direct(folder + "/" + kScratchMarker);
  if (!direct) return direct.take_error();
  return json::object{{"files", json::array{}}, {"notes", json::array{}}};
}

// Runs in a child. {files: [{path, bytes}], notes: []}
Result<json::value> open_existing(const std::string& folder) {
  const FoundFiles found = find_files(folder, {});
  json::array notes;
  if (found.sparse > 0) {
    notes.emplace_back(std::to_string(found.sparse) +
                       " sparse files were passed over: holes cost no storage");
  }
  if (!found.complete) {
    notes.emplace_back("looked at " + std::to_string(found.entries) +
                       " entries only: there may be larger files deeper down");
  }
  if (found.files.empty()) {
    return fail(Errc::NotFound, "it may not be written, and holds no file of at least 4 KiB to read");
  }
  auto direct = try_direct(found.files.front().path);
  if (!direct) return direct.take_error();
  json::array files;
  for (const DataFile& file : found.files) {
    files.push_back(json::object{{"path", file.path}, {"bytes", file.bytes}});
  }
  return json::object{{"files", std::move(files)}, {"notes", std::move(notes)}};
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
  const ApartOptions options{"looking at " + printable(path.path), kAnswerTime, &stop};
  auto answer = run_apart(options, [&] { return look_at(path.path); });
  if (!answer && is_for_the_user(answer.error().kind)) {
    return answer.take_error();
  }
  if (!answer) {
    target.record.unusable = answer.error().message();
    return target;
  }
  const json::object& facts = answer->as_object();
  target.record.folder = get_string(facts, "folder").value_or(path.path);
  target.record.size = get_count(facts, "size");
  target.record.free = get_count(facts, "free");
  target.record.read_only_reason = get_text(facts, "read_only_reason");
  target.device = static_cast<std::uint64_t>(get_int(facts, "device").value_or(0));
  target.take_answer(facts);
  target.read_facts(root);
  return target;
}

void BenchTarget::read_facts(const SystemRoot& root) {
  const auto mountinfo = read_file(root / "proc/self/mountinfo");
  if (mountinfo) record.mount = find_mount(*mountinfo, record.folder, device);
  if (record.mount) record.storage = read_storage_facts(root, *record.mount, device);
}

void BenchTarget::take_answer(const json::object& answer) {
  for (const json::value& note : get_list(answer, "notes")) record.notes.emplace_back(note.as_string());
  for (const json::value& file : get_list(answer, "files")) {
    record.files.push_back({get_text(file.as_object(), "path"), get_count(file.as_object(), "bytes")});
  }
}

void BenchTarget::open(const Owner& owner, const Layout& layout, const StopFlag& stop) {
  const ApartOptions options{"preparing " + printable(record.folder), kAnswerTime, &stop};
  const bool writable = is_writable();
  if (writable) {
    scratch_.folder = (record.folder == "/" ? "" : record.folder) + "/" + new_scratch_name();
  }
  const SmallWork dataset{layout.dataset, {}, {}, 0, {}};
  const std::string& existing = dataset.is_in(record.folder) ? layout.dataset : record.folder;
  auto answer = run_apart(
      options, [&] { return writable ? open_scratch(scratch_.folder, owner) : open_existing(existing); });
  if (!answer) {
    record.unusable = answer.error().message();
    return;
  }
  take_answer(answer->as_object());
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
  const ApartOptions options{"making small files in " + printable(record.folder), deadline, &stop};
  const auto made = run_apart(options, [&]() -> Result<json::value> {
    const auto own = record.storage.kind == PathKind::Nas ? Delegations::GiveBack : Delegations::None;
    if (auto done = make_small_files(folder, work.sizes, layout.rate, own); !done) return done.take_error();
    return json::value(true);
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
  const ApartOptions options{"removing the benchmark's folder " + printable(folder), kRemoveTime, nullptr};
  auto answer = run_apart(options, [&]() -> Result<json::value> {
    auto removed = remove_scratch(folder);
    if (!removed) return removed.take_error();
    return json::value(true);
  });
  if (!answer) return answer.take_error();
  return {};
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
      if (other.is_usable() && other.is_writable() && other.device == target.device) needed += size;
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
