#include "bench/files/model_loader.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/uio.h>

#include "base/file.hpp"
#include "bench/files/file_reader.hpp"
#include "tests/unit/bench/testing.hpp"

namespace spark::bench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr LoadWay kWays[] = {LoadWay::Mapped, LoadWay::Buffered, LoadWay::Direct};

// Two flushed files, the first of 5 MiB and some bytes.
class ModelLoader : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(make_small_files(disk / "model", {5 * kMiB + 123, 2 * kMiB}, 0));
    loading.files = {{disk / "model/0", 5 * kMiB + 123}, {disk / "model/1", 2 * kMiB}};
    loading.block = kMiB;
    loading.threads = 3;
  }

  Measured loaded(LoadWay way) {
    loading.way = way;
    auto loaded = load_model(loading);
    EXPECT_TRUE(loaded) << loaded.error().message();
    return loaded ? *loaded : Measured{};
  }

  bool is_cached(const std::string& path) const {
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    char byte = 0;
    iovec place{&byte, 1};
    return ::preadv2(file.get(), &place, 1, 0, RWF_NOWAIT) == 1;
  }

  const DiskFolder disk;
  std::atomic<std::uint64_t> progress = 0;
  ModelLoading loading;
};

TEST_F(ModelLoader, EveryWayLoadsEachByteOnce) {
  loading.progress = &progress;
  for (const LoadWay way : kWays) {
    const Measured all = loaded(way);
    EXPECT_EQ(all.bytes, 7 * kMiB + 123);
    EXPECT_EQ(progress, all.bytes);
    EXPECT_GT(all.seconds, 0);
  }
}

TEST_F(ModelLoader, AFileMayBeLoadedInPart) {
  loading.files[1].bytes = kMiB + 5;
  for (const LoadWay way : kWays) EXPECT_EQ(loaded(way).bytes, 6 * kMiB + 128);
}

TEST_F(ModelLoader, MappedAndBufferedLoadingLeavesTheFilesInThePageCacheAndDirectLoadingDoesNot) {
  EXPECT_GE(loaded(LoadWay::Mapped).memory->cached, 7 * kMiB);
  EXPECT_GE(loaded(LoadWay::Buffered).memory->cached, 7 * kMiB);
  EXPECT_LT(loaded(LoadWay::Direct).memory->cached, kMiB);
}

TEST_F(ModelLoader, TheFilesAreOutOfThePageCacheAfterwards) {
  write_text(disk / "model/warm", read_text(disk / "model/1"));
  EXPECT_TRUE(is_cached(disk / "model/warm"));
  for (const LoadWay way : kWays) {
    loaded(way);
    EXPECT_FALSE(is_cached(disk / "model/0"));
    EXPECT_FALSE(is_cached(disk / "model/1"));
  }
}

TEST_F(ModelLoader, FreeMemoryIsThatBeforeAndAfterLoading) {
  Bytes free = 1000;
  loading.free_memory = [&] { return std::exchange(free, 400); };
  const FreeMemory memory = loaded(LoadWay::Buffered).memory.value_or(FreeMemory{});
  EXPECT_EQ(memory.before, 1000u);
  EXPECT_EQ(memory.after, 400u);
  EXPECT_EQ(memory.taken(), 600u);
  EXPECT_EQ((FreeMemory{400, 1000, {}}).taken(), 0u) << "another program has ended";
}

TEST_F(ModelLoader, AFileThatBecameShorterOrWentIsAnErrorAndNoCrash) {
  loading.files[0].bytes = 6 * kMiB;
  for (const LoadWay way : kWays) {
    loading.way = way;
    const auto loaded = load_model(loading);
    ASSERT_FALSE(loaded);
    EXPECT_THAT(loaded.error().message(), HasSubstr("model/0 has become shorter"));
  }
  fs::remove(disk / "model/0");
  EXPECT_EQ(load_model(loading).error().kind, Errc::NotFound);
}

TEST_F(ModelLoader, TheLimitHoldsForAllThreadsTogether) {
  loading.rate = 70 * kMiB;
  for (const LoadWay way : kWays) EXPECT_GE(loaded(way).seconds, 0.1);
}

TEST(Weights, AreTheFilesNamedSoOrElseAllUpToASize) {
  const std::string digest(64, 'a');
  const std::vector<DataFile> files = {{"/m/README.md", 900},
                                       {"/m/model-00001-of-00002.safetensors", 500},
                                       {"/m/blobs/" + digest, 300},
                                       {"/m/blobs/sha256-" + digest, 200},
                                       {"/m/tiny-Q4_K_M.gguf", 100}};
  const auto names_and_bytes = [](const std::vector<DataFile>& chosen) {
    std::vector<std::string> words;
    for (const DataFile& file : chosen)
      words.push_back(fs::path(file.path).filename().string().substr(0, 10) + " " +
                      std::to_string(file.bytes));
    return words;
  };
  EXPECT_THAT(names_and_bytes(weights_of(files, 5000)),
              ElementsAre("model-0000 500", "aaaaaaaaaa 300", "sha256-aaa 200", "tiny-Q4_K_ 100"));
  EXPECT_THAT(names_and_bytes(weights_of(files, 600)), ElementsAre("model-0000 500", "aaaaaaaaaa 100"));
  EXPECT_THAT(names_and_bytes(weights_of({{"/m/data", 70}, {"/m/data1", 70}}, 100)),
              ElementsAre("data 70", "data1 30"));
  EXPECT_TRUE(weights_of({}, 100).empty());
}

}  // namespace
}  // namespace spark::bench
