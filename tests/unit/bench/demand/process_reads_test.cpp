#include "bench/demand/process_reads.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/bench/testing.hpp"

namespace spark::bench {
namespace {

TEST(ProcessReads, ThePartsOfProcAreRead) {
  const auto io = parse_process_io(
      "rchar: 4096\nwchar: 1\nsyscr: 2\nsyscw: 3\nread_bytes: 512\nwrite_bytes: 0\n"
      "cancelled_write_bytes: 0\n");
  ASSERT_TRUE(io);
  EXPECT_EQ(io->called, 4096u);
  EXPECT_EQ(io->from_storage, 512u);
}

TEST(ProcessReads, MalformedProcFilesAreRejected) {
  for (const char* text : {"", "rchar:", "rchar: x\nread_bytes: 1", "rchar: 1", "rchar: -1\nread_bytes: 1"}) {
    EXPECT_FALSE(parse_process_io(text)) << text;
  }
}

TEST(ProcessReads, AChildsReadsAndItsOpenFileAreSeen) {
  const DiskFolder disk;
  write_text(disk / "data", std::string(300'000, 'x'));
  int ready[2], go[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(go), 0);
  const std::string path = disk / "data";
  const pid_t child = ::fork();
  if (child == 0) {
    const int file = ::open(path.c_str(), O_RDONLY);
    char buffer[1000];
    for (int i = 0; i < 200; ++i) [[maybe_unused]] const ssize_t got = ::read(file, buffer, sizeof buffer);
    [[maybe_unused]] const ssize_t told = ::write(ready[1], "x", 1);
    [[maybe_unused]] const ssize_t asked = ::read(go[0], buffer, 1);
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  const auto processes = read_processes_below({}, ::getpid());
  ASSERT_EQ(::write(go[1], "x", 1), 1);
  ::waitpid(child, nullptr, 0);
  ASSERT_TRUE(processes.contains(child));
  const ProcessReads& reads = processes.at(child);
  EXPECT_EQ(reads.parent, ::getpid());
  EXPECT_GE(reads.called, 200'000u);
  bool seen = false;
  for (const OpenFile& file : reads.files) {
    if (file.path != fs::canonical(path).string()) continue;
    seen = true;
    EXPECT_EQ(file.size, 300'000u);
    EXPECT_EQ(file.position, 200'000u);
  }
  EXPECT_TRUE(seen);
  EXPECT_FALSE(processes.contains(::getpid()));
  for (const int fd : {ready[0], ready[1], go[0], go[1]}) ::close(fd);
}

// A loader shares its batches in it.
TEST(ProcessReads, SharedMemoryIsNoMappedFile) {
  const DiskFolder disk;
  const std::string process = disk / ("proc/" + std::to_string(::getpid() + 1));
  fs::create_directories(process);
  write_text(process + "/stat",
             std::to_string(::getpid() + 1) + " (python) S " + std::to_string(::getpid()) + " 1");
  write_text(process + "/io", "rchar: 1000\nread_bytes: 0\n");
  write_text(process + "/maps",
             "7f00-7f10 rw-s 00000000 00:01 1 /memfd:batch (deleted)\n"
             "7f10-7f20 rw-s 00000000 00:01 2 /SYSV00000000 (deleted)\n"
             "7f20-7f30 rw-s 00000000 00:0f 3 /dev/shm/torch_1\n"
             "7f30-7f40 r--p 00000000 08:01 4 /data/a.arrow\n");
  const auto processes = read_processes_below({disk.path()}, ::getpid());
  ASSERT_EQ(processes.size(), 1U);
  const auto& mapped = processes.begin()->second.mapped;
  ASSERT_EQ(mapped.size(), 1U);
  EXPECT_EQ(mapped.front().path, "/data/a.arrow");
}

TEST(ProcessReads, RingsOfIoUringAndDirectFilesAreSeen) {
  const DiskFolder disk;
  const std::string process = disk / ("proc/" + std::to_string(::getpid() + 1));
  fs::create_directories(process + "/fd");
  fs::create_directories(process + "/fdinfo");
  write_text(process + "/stat",
             std::to_string(::getpid() + 1) + " (python) S " + std::to_string(::getpid()) + " 1");
  write_text(process + "/io", "rchar: 1000\nread_bytes: 0\n");
  write_text(disk / "data", "x");
  fs::create_symlink(disk / "data", process + "/fd/3");
  fs::create_symlink("anon_inode:[io_uring]", process + "/fd/4");
  char flags[40];
  std::snprintf(flags, sizeof flags, "pos:\t0\nflags:\t0%o\n", static_cast<unsigned>(O_RDONLY | O_DIRECT));
  write_text(process + "/fdinfo/3", flags);
  const auto look = [&] {
    const auto processes = read_processes_below({disk.path()}, ::getpid());
    return processes.empty() ? ProcessReads() : processes.begin()->second;
  };
  write_text(process + "/fdinfo/4", "pos:\t0\nSqTail:\t0\nCqTail:\t0\n");
  EXPECT_FALSE(look().is_asynchronous) << "a ring without a request";
  write_text(process + "/fdinfo/4", "pos:\t0\nSqTail:\t9\nCqTail:\t9\n");
  EXPECT_TRUE(look().is_asynchronous);
  ASSERT_EQ(look().files.size(), 1U);
  EXPECT_TRUE(look().files.front().is_direct);
  write_text(process + "/fdinfo/3", "pos:\t0\nflags:\t0100000\n");
  EXPECT_FALSE(look().files.front().is_direct);
  fs::remove(process + "/fd/4");
  EXPECT_FALSE(look().is_asynchronous);
  write_text(process + "/maps", "7f00-7f10 rw-s 00000000 00:0e 1 anon_inode:[io_uring]\n");
  EXPECT_TRUE(look().is_asynchronous) << "its descriptor is closed";
}

TEST(ProcessReads, StoragePressureIsReadForTheWholeHost) {
  const DiskFolder disk;
  fs::create_directories(disk / "proc/pressure");
  EXPECT_FALSE(storage_pressure({disk.path()}));
  write_text(
      disk / "proc/pressure/io",
      "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=99\n");
  EXPECT_EQ(storage_pressure({disk.path()}), 1234u);
}

}  // namespace
}  // namespace spark::bench
