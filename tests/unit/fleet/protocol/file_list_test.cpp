#include "fleet/protocol/file_list.hpp"

#include <gtest/gtest.h>

using namespace spark;
using namespace spark::fleet;

namespace {

Result<std::vector<ListedFile>> read(const std::string& text) {
  staging::LineReader lines(text);
  return read_list(lines);
}

TEST(FileList, IsReadAsItWasWritten) {
  const auto list = read(list_header(2) + list_line("a b/\n\xff", 5) + list_line("c", kTiB));
  ASSERT_TRUE(list);
  ASSERT_EQ(list->size(), 2U);
  EXPECT_EQ((*list)[0].path.view(), "a b/\n\xff");
  EXPECT_EQ((*list)[1].size, kTiB);
}

TEST(FileList, CutShortItIsRefused) {
  const std::string text = list_header(2) + list_line("a", 5) + list_line("b", 6);
  for (std::size_t length = 0; length < text.size(); ++length) EXPECT_FALSE(read(text.substr(0, length)));
}

}  // namespace
