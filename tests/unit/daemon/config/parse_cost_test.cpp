// The cost of parsing a configuration: every member of the group spark-stage may send one. Each row is a kind
// of text for which a naive parser needs time quadratic in its length.
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <functional>

#include "daemon/config/parse.hpp"

namespace spark::config {
namespace {

using Write = std::function<std::string(int number)>;

struct Shape {
  const char* name;
  std::string begin;
  Write repeated;
  std::string end{};
};

void PrintTo(const Shape& row, std::ostream* out) {
  *out << row.name;
}

std::string text_of(const Shape& row, std::size_t bytes) {
  std::string text = row.begin;
  for (int i = 0; text.size() + row.end.size() < bytes; ++i) text += row.repeated(i);
  return text + row.end;
}

// CPU time of this thread: other work on the machine does not count.
double processor_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

double cost(const std::string& text) {
  const double begin = processor_seconds();
  (void)parse(text, "c.yaml");
  return processor_seconds() - begin;
}

Write same(const std::string& text) {
  return [text](int) { return text; };
}

Write numbered(const std::string& before, const std::string& after) {
  return [before, after](int number) { return before + std::to_string(number) + after; };
}

const std::string kStart = "version: 1\ntargets: {t: {address: h}}\n";
const std::string kVolume = "volumes: {v: {target: t, subsystem: s, mount: /mnt/v}}\n";

std::vector<Shape> rows() {
  return {
      {"keys", "", numbered("k", ": 1\n")},
      {"keys of two letters and more", "", numbered("", ":\n")},
      {"the same key", "", same("key: 1\n")},
      {"unknown keys of a section", kStart + "cache:\n", numbered("  k", ":\n")},
      {"targets", "version: 1\ntargets:\n", numbered("  t", ": {address: h}\n")},
      {"volumes of an unknown target", kStart + "volumes:\n",
       [](int number) {
         const std::string text = std::to_string(number);
         return "  v" + text + ": {target: u" + text + ", subsystem: s, mount: /m" + text + "}\n";
       }},
      {"volumes", kStart + "volumes:\n",
       [](int number) {
         const std::string text = std::to_string(number);
         return "  v" + text + ": {target: t, subsystem: s, mount: /m" + text + "}\n";
       }},
      {"volumes at one mount point", kStart + "volumes:\n",
       numbered("  v", ": {target: t, subsystem: s, mount: /m}\n")},
      {"datasets of an unknown volume", kStart + kVolume + "datasets:\n",
       numbered("  d", ": {volume: w, path: .}\n")},
      {"datasets", kStart + kVolume + "datasets:\n", numbered("  d", ": {path: /data/d}\n")},
      {"datasets with one variable", kStart + kVolume + "datasets:\n",
       numbered("  d", ": {path: /d, env: X}\n")},
      {"portals", "version: 1\ntargets: {t: {portals: [", numbered("h", ","), "]}}\n"},
      {"a portal, many times", "version: 1\ntargets: {t: {portals: [", same("h,"), "]}}\n"},
      {"mount options", kStart + "volumes: {v: {target: t, subsystem: s, mount: /m, options: [",
       numbered("o", ","), "]}}\n"},
      {"patterns", kStart + "datasets: {d: {path: /d, exclude: [", same("'*',"), "]}}\n"},
      {"a deep path", kStart + "datasets: {d: {path: ", same("/a"), "}}\n"},
      {"lists in lists", "a: ", same("[")},
      {"maps in maps", "a: ", same("{")},
      {"maps in maps, with keys", "a: ", same("{a: ")},
      {"lists in lists by dashes", "a:\n", same("- ")},
      {"question marks", "", same("? ")},
      {"question marks, each in a line", "", same("?\n")},
      {"colons", "", same(": ")},
      {"keys without an end", "", same("a: ")},
      {"an open quote", "a: \"", same("x")},
      {"an open quote over lines", "a: \"", same("x\n ")},
      {"an open single quote", "a: '", same("''")},
      {"escapes", "a: \"", same("\\n"), "\"\n"},
      {"a word over lines", "a:\n", same("  x\n")},
      {"words in a line", "a: ", same("x ")},
      {"spaces in a line", "a: x", same(" "), "x\n"},
      {"empty lines", "a: x", same("\n"), "  x\n"},
      {"tabs", "a: x", same("\t")},
      {"comments", "a: 1\n", same("#\n")},
      {"a comment", "a: 1 ", same("#")},
      {"a block of text", "a: |\n", same("  x\n")},
      {"a folded block", "a: >\n", same("  x\n\n")},
      {"a block of empty lines", "a: |\n", same("\n"), "  x\n"},
      {"a list in one line", "a: [", same("x, "), "]\n"},
      {"a map in one line", "a: {", numbered("k", ": x, "), "}\n"},
      {"keys without values in one line", "a: {", numbered("k", ", "), "}\n"},
      {"commas", "a: [", same(",")},
      {"anchors", "a: [", numbered("&a", " x,")},
      {"aliases", "a: [", same("*a,")},
      {"tags", "a: [", same("!a x,")},
      {"documents", "", same("---\n")},
      {"directives", "", same("%A b\n")},
      {"list entries", "a:\n", same("- x\n")},
      {"control characters", "a: ", same("\x01\n")},
      {"bytes that are not UTF-8", "a: ", same("\xff")},
      {"control characters in quotes", kStart + "datasets: {d: {path: /d, exclude: [", same("\"\\a\","),
       "]}}\n"},
  };
}

class ConfigCost : public testing::TestWithParam<Shape> {};

TEST_P(ConfigCost, IsNotQuadraticInTheLength) {
  constexpr std::size_t kPart = 16 << 10;
  const std::string an_eighth = text_of(GetParam(), kPart), all = text_of(GetParam(), 8 * kPart);
  double part = cost(an_eighth), whole = cost(all);
  // A quadratic cost would be 64 times as high. The millisecond allows for clock and allocator.
  const auto is_too_high = [&] { return whole >= 0.001 + 20 * part; };
  // The lowest of a few counts, since another program on the same core evicts caches.
  for (int i = 0; i < 4 && is_too_high(); ++i) {
    part = std::min(part, cost(an_eighth));
    whole = std::min(whole, cost(all));
  }
  EXPECT_FALSE(is_too_high()) << whole << " s for " << all.size() << " bytes, " << part << " s for an eighth";
}

INSTANTIATE_TEST_SUITE_P(Texts, ConfigCost, testing::ValuesIn(rows()));

}  // namespace
}  // namespace spark::config
