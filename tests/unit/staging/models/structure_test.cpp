#include "staging/models/structure.hpp"

#include <gtest/gtest.h>

#include "staging/files/walk.hpp"
#include "tests/unit/staging/models/made_weights.hpp"
#include "tests/unit/staging/support.hpp"

namespace spark::staging {
namespace {

namespace fs = std::filesystem;

class ModelFolder : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& content) {
    test::write_text(folder_ / name, content);
  }

  std::string faults() {
    const StopFlag go;
    const auto tree = open_tree(folder_.path());
    const auto walked = walk(*tree, {}, go);
    const auto found = find_model_faults(*tree, walked->entries, go);
    if (!found) return found.error().message();
    std::string all;
    for (const ModelFault& fault : *found) all += fault.path + ": " + fault.what + "\n";
    return all;
  }

  test::TempFolder folder_;
};

constexpr char kIndex[] =
    R"({"metadata":{"total_size":1},"weight_map":{"a":"m-00001-of-00002.safetensors","b":"m-00002-of-00002.safetensors"}})";

TEST_F(ModelFolder, AWholeModelHasNoFault) {
  write("config.json", "{}");
  write("model.safetensors.index.json", kIndex);
  write("m-00001-of-00002.safetensors", whole_safetensors());
  write("m-00002-of-00002.safetensors", whole_safetensors());
  write("q/tiny-Q4-00001-of-00002.gguf", gguf_part(1, 2));
  write("q/tiny-Q4-00002-of-00002.gguf", gguf_part(2, 2));
  write("q/mmproj-tiny.gguf", whole_gguf());
  EXPECT_EQ(faults(), "");
}

TEST_F(ModelFolder, AMissingShardIsNamed) {
  write("sub/model.safetensors.index.json", kIndex);
  write("sub/m-00001-of-00002.safetensors", whole_safetensors());
  EXPECT_EQ(faults(),
            "sub/model.safetensors.index.json: it names m-00002-of-00002.safetensors, which is not there\n");
}

TEST_F(ModelFolder, AnIndexWithoutAnyOfItsFilesIsNoFault) {
  write("model.safetensors.index.json", kIndex);
  write("tiny-Q4.gguf", whole_gguf());
  EXPECT_EQ(faults(), "");
}

TEST_F(ModelFolder, ABrokenIndexIsAFault) {
  write("model.safetensors.index.json", "{\"weight_map\":");
  EXPECT_EQ(faults(), "model.safetensors.index.json: it is not JSON\n");
}

TEST_F(ModelFolder, AMissingPartIsNamedOnce) {
  write("tiny-00001-of-00003.gguf", gguf_part(1, 3));
  write("tiny-00003-of-00003.gguf", gguf_part(3, 3));
  EXPECT_EQ(faults(),
            "tiny-00001-of-00003.gguf: it is part 1 of 3, and tiny-00002-of-00003.gguf is not there\n");
}

TEST_F(ModelFolder, APartUnderAnotherNameIsAFault) {
  write("tiny.gguf", gguf_part(2, 3));
  EXPECT_NE(faults().find("tiny.gguf: it is part 2 of 3"), std::string::npos);
}

TEST_F(ModelFolder, ATruncatedFileIsFoundAlsoBehindASymlink) {
  write("blobs/0123", whole_safetensors().substr(0, 40));
  fs::create_directories(folder_ / "snapshots/c");
  fs::create_symlink("../../blobs/0123", folder_ / "snapshots/c/model.safetensors");
  EXPECT_EQ(faults(), "snapshots/c/model.safetensors: it does not begin with a header of safetensors\n");
}

TEST_F(ModelFolder, ASymlinkToNothingIsAFault) {
  fs::create_symlink("../blobs/0123", folder_ / "model.safetensors");
  fs::create_symlink("nothing", folder_ / "pytorch_model.bin");
  EXPECT_EQ(faults(),
            "model.safetensors: it is a symlink to nothing in the set\n"
            "pytorch_model.bin: it is a symlink to nothing in the set\n");
}

TEST_F(ModelFolder, APointerOfGitLfsIsAFaultUnderTheNameOfWeightsOnly) {
  const std::string pointer =
      "version https://git-lfs.github.com/spec/v1\noid sha256:" + std::string(64, 'a') + "\nsize 123456\n";
  write("pytorch_model.bin", pointer);
  write("notes.txt", pointer);
  EXPECT_EQ(
      faults(),
      "pytorch_model.bin: it is a pointer of git-lfs in place of the file, which `git lfs pull` brings\n");
}

}  // namespace
}  // namespace spark::staging
