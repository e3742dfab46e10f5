#include "tests/unit/staging/support.hpp"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "base/child.hpp"
#include "base/file.hpp"
#include "staging/files/tree.hpp"

namespace spark::staging::test {

TempFolder::TempFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "spark-staging-XXXXXX").native();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
  path_ = name;
}

TempFolder::~TempFolder() {
  const auto removed = remove_tree(path_.parent_path(), path_.filename());  // opens closed folders
  if (!removed) ADD_FAILURE() << "left behind: " << removed.error().message();
}

SmallTmpfs::SmallTmpfs(std::filesystem::path folder, const std::string& options, unsigned long flags)
    : folder_(std::move(folder)) {
  std::filesystem::create_directories(folder_);
  if (::mount("tmpfs", folder_.c_str(), "tmpfs", flags, options.c_str()) != 0) {
    throw std::runtime_error("mounting a tmpfs failed");
  }
}

SmallTmpfs::~SmallTmpfs() {
  ::umount2(folder_.c_str(), MNT_DETACH);
}

bool as_nobody(const std::function<bool()>& work) {
  const pid_t child = ::fork();
  const auto is_nobody = [] { return ::geteuid() != 0 || (::setgid(65534) == 0 && ::setuid(65534) == 0); };
  if (child == 0) ::_exit(is_nobody() && work() ? 0 : 1);
  int status = -1;
  return ::waitpid(child, &status, 0) == child && status == 0;
}

void write_text(const std::filesystem::path& path, std::string_view text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

void mark_rest(const std::filesystem::path& folder, const std::string& mark) {
  write_text(folder / mark, "");
  std::filesystem::permissions(folder / mark, std::filesystem::perms(0600));
  std::filesystem::permissions(folder, std::filesystem::perms(0700));
}

std::string read_text(const std::filesystem::path& path) {
  return read_file(path, std::string::npos)
      .value_or("");  // a byte at a time took most of the sanitizers' run
}

std::string noise(std::size_t size, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string bytes;
  bytes.reserve(size + 8);
  while (bytes.size() < size) {
    const std::uint64_t number = random();
    bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  bytes.resize(size);
  return bytes;
}

std::string differences_by_rsync(const std::filesystem::path& source, const std::filesystem::path& copy) {
  const std::string end = std::filesystem::is_directory(source) ? "/" : "";
  const auto run = run_child({"rsync", "-aHAXn", "--checksum", "--modify-window=-1", "--delete",
                              "--itemize-changes", source.native() + end, copy.native() + end},
                             std::chrono::minutes(2));
  if (!run) return run.error().message();
  return run->exit_status == 0 ? run->out : "rsync failed: " + run->err;
}

Bytes allocated(const std::filesystem::path& path) {
  struct stat info {};
  EXPECT_EQ(::stat(path.c_str(), &info), 0);
  return static_cast<Bytes>(info.st_blocks) * 512;
}

int run_and_kill(const std::function<int()>& work, std::chrono::microseconds delay) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work());
  const auto end = std::chrono::steady_clock::now() + delay;
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() >= end) ::kill(child, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return exit_status_of(status);
}

}  // namespace spark::staging::test
