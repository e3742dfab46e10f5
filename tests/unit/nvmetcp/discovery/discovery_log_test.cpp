#include "nvmetcp/discovery/discovery_log.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace spark::nvmetcp {
namespace {

using Bytes1K = std::vector<std::byte>;

void put(Bytes1K& bytes, std::size_t offset, std::string_view text) {
  std::transform(text.begin(), text.end(), bytes.begin() + static_cast<std::ptrdiff_t>(offset),
                 [](char c) { return static_cast<std::byte>(c); });
}

Bytes1K entry(std::string_view nqn, std::string_view address, std::string_view port = "4420",
              int transport = 3, int family = 1, int kind = 2) {
  Bytes1K bytes(kDiscoveryEntryBytes);
  bytes[0] = static_cast<std::byte>(transport);
  bytes[1] = static_cast<std::byte>(family);
  bytes[2] = static_cast<std::byte>(kind);
  put(bytes, 32, port);
  put(bytes, 256, nqn);
  put(bytes, 512, address);
  return bytes;
}

// A target with a log that the test changes; records the requests.
struct FakeTarget {
  std::uint64_t generation = 1;
  std::uint64_t claimed = 0;  // number of entries in the header, if not the real one
  std::uint8_t format = 0;
  std::vector<Bytes1K> entries;
  int moves = 0;  // number of times that the generation changes after the entries were read
  int header_reads = 0;
  bool asked_past_end = false;

  DiscoveryLogReader reader() {
    return [this](std::uint64_t offset, std::span<std::byte> into) -> Result<> {
      Bytes1K all = header();
      for (const Bytes1K& one : entries) all.insert(all.end(), one.begin(), one.end());
      if (offset + into.size() > all.size()) asked_past_end = true;
      for (std::size_t i = 0; i < into.size() && offset + i < all.size(); ++i) into[i] = all[offset + i];
      if (offset != 0 && moves > 0) --moves, ++generation;
      return {};
    };
  }
  Bytes1K header() {
    ++header_reads;
    Bytes1K bytes(kDiscoveryHeaderBytes);
    const std::uint64_t count = claimed != 0 ? claimed : entries.size();
    for (std::size_t i = 0; i < 8; ++i) {
      bytes[i] = static_cast<std::byte>(generation >> (8 * i));
      bytes[8 + i] = static_cast<std::byte>(count >> (8 * i));
    }
    bytes[16] = static_cast<std::byte>(format);
    return bytes;
  }
};

const Portal kAsked{"10.0.0.5", 4420};

TEST(DiscoveryLog, EntriesOfEveryKindAreRead) {
  FakeTarget target;
  target.generation = 0x1122334455667788;
  target.entries = {entry("raid5-data", "192.168.0.100"),
                    entry("nqn.2014-08.org.nvmexpress.discovery", "192.168.0.100", "4420", 3, 1, 3),
                    entry("nqn.2014-08.org.nvmexpress.discovery", "fd00::9", "8009", 3, 2, 1),
                    entry("nqn.x", "nn-0x1000:pn-0x2000", "none", 2, 4)};
  const DiscoveryLog log = read_discovery_log(target.reader(), kAsked).value();
  EXPECT_EQ(log.generation, 0x1122334455667788U);
  ASSERT_EQ(log.entries.size(), 4U);
  EXPECT_TRUE(log.ignored.empty());
  EXPECT_EQ(log.entries[0].nqn, "raid5-data");
  EXPECT_EQ(log.entries[0].kind, SubsystemKind::Io);
  EXPECT_EQ(log.entries[0].portal, (Portal{"192.168.0.100", 4420}));
  EXPECT_EQ(log.entries[1].kind, SubsystemKind::Discovery);
  EXPECT_EQ(log.entries[2].kind, SubsystemKind::Referral);
  EXPECT_EQ(log.entries[2].portal, (Portal{"fd00::9", 8009}));
  EXPECT_EQ(log.entries[3].transport, "fc");
  EXPECT_FALSE(target.asked_past_end);
}

TEST(DiscoveryLog, AnEmptyLogIsValid) {
  FakeTarget target;
  EXPECT_TRUE(read_discovery_log(target.reader(), kAsked).value().entries.empty());
  EXPECT_FALSE(target.asked_past_end);
}

TEST(DiscoveryLog, ItIsReadAgainUntilItsGenerationIsStable) {
  FakeTarget target;
  target.entries = {entry("a", "10.0.0.5")};
  target.moves = 3;
  const DiscoveryLog log = read_discovery_log(target.reader(), kAsked).value();
  EXPECT_EQ(log.generation, 4U);
  EXPECT_EQ(log.entries.size(), 1U);
}

TEST(DiscoveryLog, ALogThatKeepsChangingIsUnavailable) {
  FakeTarget target;
  target.entries = {entry("a", "10.0.0.5")};
  target.moves = 1000;
  const auto log = read_discovery_log(target.reader(), kAsked);
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().kind, Errc::Unavailable);
  EXPECT_LT(target.header_reads, 50);
}

TEST(DiscoveryLog, AbsurdCountsAndFormatsAreRefusedBeforeAnythingIsAllocated) {
  FakeTarget target;
  target.claimed = std::uint64_t{1} << 54;  // times 1024 it would overflow to 0
  EXPECT_EQ(read_discovery_log(target.reader(), kAsked).error().kind, Errc::Failed);
  target.claimed = 0;
  target.format = 7;
  EXPECT_EQ(read_discovery_log(target.reader(), kAsked).error().kind, Errc::Failed);
}

TEST(DiscoveryLog, AReadThatFailsIsTheError) {
  const DiscoveryLogReader broken = [](std::uint64_t, std::span<std::byte>) -> Result<> {
    return fail(Errc::Unavailable, "gone");
  };
  EXPECT_EQ(read_discovery_log(broken, kAsked).error().what, "gone");
}

TEST(DiscoveryLog, AWildcardAddressIsReplacedByTheAnsweringOne) {
  FakeTarget target;
  target.entries = {entry("a", "0.0.0.0", "4421"), entry("b", "::", "4420", 3, 2)};
  const DiscoveryLog log = read_discovery_log(target.reader(), kAsked).value();
  EXPECT_EQ(log.entries.at(0).portal, (Portal{"10.0.0.5", 4421}));
  EXPECT_EQ(log.entries.at(1).portal, kAsked);
}

TEST(DiscoveryLog, UnterminatedAndPaddedFieldsAreTrimmed) {
  Bytes1K unterminated = entry(std::string(223, 'n'), "10.0.0.5");
  Bytes1K padded = entry("raid5-data      ", "10.0.0.5     ", "4420      ");
  Bytes1K too_long = entry(std::string(256, 'n'), "10.0.0.5");
  Bytes1K all = unterminated;
  all.insert(all.end(), padded.begin(), padded.end());
  all.insert(all.end(), too_long.begin(), too_long.end());
  all.resize(all.size() + 700);  // a partial entry
  const DiscoveryLog log = parse_discovery_entries(all);
  ASSERT_EQ(log.entries.size(), 2U);
  EXPECT_EQ(log.entries[0].nqn, std::string(223, 'n'));
  EXPECT_EQ(log.entries[1].nqn, "raid5-data");
  EXPECT_EQ(log.entries[1].portal, kAsked);
  ASSERT_EQ(log.ignored.size(), 1U);
  EXPECT_NE(log.ignored[0].find("entry 3"), std::string::npos);
}

TEST(DiscoveryLog, InvalidEntriesAreIgnoredWithAReason) {
  struct Case {
    Bytes1K bytes;
    const char* words;
  };
  const std::vector<Case> cases = {
      {entry("", "10.0.0.5"), "empty"},
      {entry("a,b", "10.0.0.5"), "comma"},
      {entry("a\x1b[2Jb", "10.0.0.5"), "control"},
      {entry("a\xff\xfe", "10.0.0.5"), "no text"},
      {entry("a", "10.0.0.5", "4420", 9), "unknown transport"},
      {entry("a", "10.0.0.5", "4420", 3, 1, 77), "unknown kind"},
      {entry("a", "not an address"), "no ipv4 address"},
      {entry("a", "fd00::5"), "no ipv4 address"},
      {entry("a", "10.0.0.5", "4420", 3, 200), "no unknown address"},
      {entry("a", ""), "no ipv4 address"},
      {entry("a", "10.0.0.5\x1b]0;x\x07"), "no text"},
      {entry("a", "10.0.0.5", "99999"), "port \"99999\""},
      {entry("a", "10.0.0.5", "0"), "port \"0\""},
      {entry("a", "10.0.0.5", "-1"), "port \"-1\""},
      {entry("a", "10.0.0.5", "none"), "port \"none\""},
  };
  for (const Case& one : cases) {
    const DiscoveryLog log = parse_discovery_entries(one.bytes);
    EXPECT_TRUE(log.entries.empty()) << one.words;
    ASSERT_EQ(log.ignored.size(), 1U) << one.words;
    EXPECT_NE(log.ignored[0].find(one.words), std::string::npos) << log.ignored[0];
  }
}

TEST(DiscoveryLog, ManyInvalidEntriesGiveFewMessages) {
  Bytes1K all(500 * kDiscoveryEntryBytes);
  const DiscoveryLog log = parse_discovery_entries(all);
  EXPECT_LE(log.ignored.size(), 21U);
  EXPECT_EQ(log.ignored.back(), "and 480 more");
}

}  // namespace
}  // namespace spark::nvmetcp
