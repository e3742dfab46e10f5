#include "staging/models/weights.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/file.hpp"
#include "tests/support/temp_folder.hpp"
#include "tests/unit/staging/models/made_weights.hpp"

namespace spark::staging {
namespace {

FileBytes bytes_of(const std::string& content) {
  FileBytes file;
  file.size = content.size();
  file.read = [&content](Bytes offset, std::size_t want) { return content.substr(offset, want); };
  return file;
}

std::string fault_of_safetensors(const std::string& content) {
  const auto weights = look_at_safetensors(bytes_of(content));
  return weights ? weights->fault : weights.error().message();
}

TEST(Safetensors, AreWholeIfTheFileEndsWithTheLastTensor) {
  EXPECT_EQ(fault_of_safetensors(safetensors(kTwoTensors, 12)), "");
  EXPECT_EQ(fault_of_safetensors(safetensors("{}", 0)), "");
}

TEST(Safetensors, EachTruncationIsFound) {
  const std::string whole = safetensors(kTwoTensors, 12);
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_NE(fault_of_safetensors(whole.substr(0, length)), "") << length;
  EXPECT_EQ(fault_of_safetensors(whole.substr(0, whole.size() - 1)),
            "it has 11 bytes of tensors, and its header describes 12");
  EXPECT_EQ(fault_of_safetensors(whole + "x"), "it has 13 bytes of tensors, and its header describes 12");
}

TEST(Safetensors, AHeaderThatIsNoneIsAFault) {
  EXPECT_NE(fault_of_safetensors(""), "");
  EXPECT_NE(fault_of_safetensors(little(~0ull, 8) + "{}"), "");
  EXPECT_NE(fault_of_safetensors(safetensors("[]", 0)), "");
  EXPECT_NE(fault_of_safetensors(safetensors(R"({"a":1})", 0)), "");
  EXPECT_NE(fault_of_safetensors(safetensors(R"({"a":{"data_offsets":[0]}})", 0)), "");
  EXPECT_NE(fault_of_safetensors(safetensors(R"({"a":{"data_offsets":[0,-1]}})", 0)), "");
  EXPECT_NE(fault_of_safetensors("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"), "");
}

TEST(Safetensors, AFileThatCannotBeReadIsAnError) {
  FileBytes file;
  file.size = 100;
  file.read = [](Bytes, std::size_t) { return std::nullopt; };
  EXPECT_FALSE(look_at_safetensors(file));
  EXPECT_FALSE(look_at_gguf(file));
}

Weights look_at(const std::string& content) {
  auto weights = look_at_gguf(bytes_of(content));
  if (!weights) return {weights.error().message()};
  return *weights;
}

TEST(Gguf, IsWholeIfItsLastTensorEndsWithinTheFile) {
  EXPECT_EQ(look_at(gguf(some_values(), 4)).fault, "");
  EXPECT_EQ(look_at(gguf(some_values(), 4, 2)).fault, "");
  EXPECT_EQ(look_at(gguf(some_values(), 4) + "padding").fault, "");
}

TEST(Gguf, EachTruncationIsFound) {
  const std::string whole = gguf(some_values(), 4);
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_NE(look_at(whole.substr(0, length)).fault, "") << length;
}

TEST(Gguf, APartOfSeveralNamesItsNumber) {
  const Weights weights = look_at(gguf_part(2, 3));
  EXPECT_EQ(weights.fault, "");
  EXPECT_EQ(weights.part, 2u);
  EXPECT_EQ(weights.parts, 3u);
}

TEST(Gguf, ALargeAlignmentMovesTheTensors) {
  const std::string aligned = named("general.alignment") + little(4, 4) + little(4096, 4);
  std::string content = gguf(aligned, 1);
  EXPECT_NE(look_at(content).fault, "");
  content.resize(4096 + 256 + 144);
  EXPECT_EQ(look_at(content).fault, "");
}

TEST(Gguf, AHeaderThatIsNoneIsAFaultAndAnUnknownVersionIsNot) {
  EXPECT_NE(look_at("").fault, "");
  EXPECT_NE(look_at("GGML and more").fault, "");
  EXPECT_NE(look_at(gguf(named("odd") + little(77, 4), 1)).fault, "");
  EXPECT_EQ(look_at(gguf(some_values(), 4, 9)).fault, "");
}

TEST(Gguf, SizesBeyondAnyFileAreAFault) {
  const std::string begin = "GGUF" + little(3, 4) + little(1, 8) + little(0, 8) + named("a") + little(2, 4);
  for (const std::uint64_t many : {~0ull, 1ull << 63, 1ull << 32})
    EXPECT_NE(look_at(begin + little(many, 8) + little(many, 8) + little(0, 4) + little(0, 8)).fault, "");
  const std::string array = named("a") + little(9, 4) + little(10, 4) + little(~0ull, 8);
  EXPECT_NE(look_at("GGUF" + little(3, 4) + little(0, 8) + little(1, 8) + array).fault, "");
}

TEST(FileBytes, AreThoseOfTheFile) {
  test::TempFolder folder;
  const auto path = folder.path() / "a.gguf";
  const std::string content = gguf(some_values(), 4);
  std::ofstream(path, std::ios::binary) << content;
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const auto weights = look_at_gguf(bytes_of_file(fd.get(), content.size()));
  ASSERT_TRUE(weights);
  EXPECT_EQ(weights->fault, "");
  const auto beyond = look_at_gguf(bytes_of_file(fd.get(), content.size() + 10));
  ASSERT_TRUE(beyond);
}

}  // namespace
}  // namespace spark::staging
