// Stored formats: hashes, names, manifests, journals. And the throttle's arithmetic.
#include <gtest/gtest.h>

#include <fcntl.h>

#include <set>

#include "base/file.hpp"
#include "staging/copy/partial/journal.hpp"
#include "staging/files/io/throttle.hpp"
#include "staging/manifest/entry_line.hpp"
#include "staging/manifest/hash.hpp"
#include "staging/manifest/manifest.hpp"
#include "staging/manifest/manifest_reader.hpp"
#include "staging/manifest/names.hpp"
#include "tests/unit/staging/support.hpp"

namespace spark::staging {
namespace {

using namespace test;

Digest digest_of(std::string_view text) {
  Hasher hasher;
  hasher.add(text);
  return hasher.digest();
}

TEST(Hash, MatchesXxh128sum) {
  EXPECT_EQ(to_hex(digest_of("")), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(to_hex(digest_of("hello\n")), "6bba86c7e069f56d5a10b435f1c8e49c");
}

TEST(Hash, HexGoesBothWays) {
  const Digest digest = digest_of("x");
  EXPECT_EQ(digest_from_hex(to_hex(digest)), digest);
  for (const char* bad :
       {"", "99aa", "99AA06d3014798d86001c324468d497f", "g9aa06d3014798d86001c324468d497f"}) {
    EXPECT_FALSE(digest_from_hex(bad)) << bad;
  }
}

TEST(Hash, ZerosOfAHoleAreZeros) {
  for (const Bytes count : {Bytes{0}, Bytes{1}, Bytes{70'000}, kHashPiece, kHashPiece + 1}) {
    Hasher hole;
    hole.add_zeros(count);
    EXPECT_EQ(hole.digest(), digest_of(std::string(count, '\0'))) << count;
  }
  Hasher mixed;
  mixed.add("a");
  mixed.add_zeros(5);
  mixed.add("b");
  mixed.add_zeros(2);
  EXPECT_EQ(mixed.digest(), digest_of(std::string("a\0\0\0\0\0b\0\0", 9)));
}

TEST(Hash, PiecesCoverTheFile) {
  EXPECT_EQ(piece_count(0), 1U);
  EXPECT_EQ(piece_count(kHashPiece), 1U);
  EXPECT_EQ(piece_count(kHashPiece + 1), 2U);
  const Digest piece = digest_of("x");
  EXPECT_EQ(digest_of_pieces(std::vector{piece}), piece);
  EXPECT_NE(digest_of_pieces(std::vector{piece, piece}), piece);
}

TEST(Names, EncodingKeepsEveryByte) {
  std::string all;
  for (int c = 1; c < 256; ++c) all += static_cast<char>(c);
  const std::string text = encode_name(all);
  for (const char c : text) EXPECT_TRUE(c > ' ' && c <= '~');
  EXPECT_EQ(decode_name(text), all);
  for (const char* bad : {"%", "%4", "%zz", "a b", "%41", "\"", "\xff"})
    EXPECT_FALSE(decode_name(bad)) << bad;
}

TEST(Names, AFolderNameIsSafeAndUniqueToItsDataset) {
  const std::vector<std::string> hostile = {"..",
                                            ".",
                                            "",
                                            "/",
                                            "a/b",
                                            "a%2fb",
                                            ".hidden",
                                            "data",
                                            "a\nb",
                                            "\xff",
                                            "vol:a/b",
                                            "vol:a_b",
                                            "%64ata",
                                            std::string(500, 'x'),
                                            std::string(501, 'x'),
                                            std::string(200, '/')};
  std::set<std::string> seen;
  for (const std::string& dataset : hostile) {
    const std::string name = folder_name(dataset);
    EXPECT_FALSE(name.empty());
    EXPECT_LE(name.size(), 200U);
    EXPECT_EQ(name.find('/'), std::string::npos);
    EXPECT_NE(name.front(), '.');
    EXPECT_NE(name, "data");
    EXPECT_TRUE(seen.insert(name).second) << name;
  }
  EXPECT_EQ(folder_name("imagenet"), "imagenet");
  EXPECT_EQ(folder_name("datasets:imagenet/train"), "datasets%3aimagenet%2ftrain");
  EXPECT_LE(companion_name(std::string(255, 'n'), ".spark-partial").size(), 255U);
}

TEST(Names, TheDatasetOfAFolderIsKnownUnlessItsNameWasShortened) {
  for (const std::string dataset : {"imagenet", "volume:a/b c", "data", ".hidden", "a%20b", "a\xff"})
    EXPECT_EQ(dataset_of_folder(folder_name(dataset)), dataset);
  EXPECT_EQ(dataset_of_folder(folder_name(std::string(300, 'x'))), std::nullopt);
  for (const char* other : {"data", "a%2", "a%zz", "a:b", "%61", "%-"})
    EXPECT_EQ(dataset_of_folder(other), std::nullopt) << other;
}

Entry file(std::string path, std::string_view content) {
  Entry entry;
  entry.path = std::move(path);
  entry.size = entry.allocated = content.size();
  entry.mode = 0640;
  entry.mtime_ns = -1'234'567'890'123;
  entry.ctime_ns = 1'795'194'961'429'267'143;
  entry.inode = 0xFFFF'FFFF'FFFF'FFF0;
  entry.hash = digest_of(content);
  return entry;
}

Manifest sample() {
  Manifest manifest;
  manifest.dataset = "vol:a\nb";
  manifest.source = "/mnt/\xff";
  manifest.root = {0xFFFF'FFFF'FFFF'FFF0, 123};
  Entry root;
  root.type = EntryType::Folder;
  root.mode = 02755;
  Entry link;
  link.path = "b";
  link.type = EntryType::Symlink;
  link.target = "../\x80\"\\%";
  Entry again = file("c\"%\\", "hello");
  again.link_to = "a\n\xff";
  manifest.entries = {root, file("a\n\xff", "hello"), link, again};
  return manifest;
}

TEST(Manifest, ComesBackByteForByte) {
  const TempFolder folder;
  const Manifest manifest = sample();
  ASSERT_OK(write_manifest(folder / "m", manifest));
  const auto read = parse_manifest(read_text(folder / "m"));
  ASSERT_OK(read);
  EXPECT_EQ(read->dataset, manifest.dataset);
  EXPECT_EQ(read->source, manifest.source);
  EXPECT_EQ(read->root, manifest.root);
  EXPECT_EQ(read->entries, manifest.entries);
  EXPECT_EQ(summary_of(read->entries).hash, summary_of(manifest.entries).hash);
  for (const char c : read_text(folder / "m")) EXPECT_TRUE(c == '\n' || (c >= ' ' && c <= '~'));
}

TEST(Manifest, CountsAHardLinkedFileOnce) {
  const Summary summary = summary_of(sample().entries);
  EXPECT_EQ(summary.bytes, 5U);
  EXPECT_EQ(summary.files, 2U);
  EXPECT_EQ(summary.footprint.bytes, 2U * 4096);  // the root and the file, in whole blocks
  EXPECT_EQ(summary.footprint.inodes, 3U);
}

TEST(Manifest, RewindRereadsTheSameEntries) {
  const TempFolder folder;
  ASSERT_OK(write_manifest(folder / "m", sample()));
  auto reader = ManifestReader::open(folder / "m");
  ASSERT_OK(reader);
  ASSERT_TRUE(reader->next() && reader->next());
  ASSERT_OK(reader->rewind());
  EXPECT_TRUE(is_same_source(*reader, sample().entries));
  ASSERT_OK(reader->rewind());
  const auto summary = summary_of(*reader);
  ASSERT_OK(summary);
  EXPECT_EQ(summary->hash, summary_of(sample().entries).hash);
}

TEST(Manifest, ASourceWithMoreOrFewerEntriesDiffers) {
  auto reader = ManifestReader::of(to_text(sample()));
  ASSERT_OK(reader);
  Entries more = sample().entries, less = sample().entries;
  more.push_back(file("d", ""));
  less.pop_back();
  EXPECT_FALSE(is_same_source(*reader, more));
  ASSERT_OK(reader->rewind());
  EXPECT_FALSE(is_same_source(*reader, less));
  ASSERT_OK(reader->rewind());
  EXPECT_TRUE(is_same_source(*reader, sample().entries));
}

TEST(Manifest, TheHashCoversContentAndModesButNotTimesOrOwners) {
  const std::string hash = summary_of(sample().entries).hash;
  const auto changed = [](const std::function<void(Manifest&)>& change) {
    Manifest manifest = sample();
    change(manifest);
    return summary_of(manifest.entries).hash;
  };
  EXPECT_NE(changed([](Manifest& m) { m.entries[1].path = "a"; }), hash);
  EXPECT_NE(changed([](Manifest& m) { m.entries[1].hash.low ^= 1; }), hash);
  EXPECT_NE(changed([](Manifest& m) { m.entries[1].mode = 0600; }), hash);
  EXPECT_NE(changed([](Manifest& m) { m.entries[2].target = "x"; }), hash);
  EXPECT_NE(changed([](Manifest& m) { m.entries.pop_back(); }), hash);
  EXPECT_EQ(changed([](Manifest& m) { m.entries[1].mtime_ns = m.entries[1].inode = m.entries[1].uid = 7; }),
            hash);
}

TEST(Manifest, ATruncatedOrChangedManifestIsRefused) {
  const std::string text = to_text(sample());
  ASSERT_OK(parse_manifest(text));
  for (std::size_t i = 0; i < text.size(); ++i) {
    EXPECT_KIND(parse_manifest(text.substr(0, i)), Errc::Mismatch);
    std::string changed = text;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_FALSE(parse_manifest(changed)) << i;
  }
}

TEST(Manifest, EscapingInvalidAndDuplicatePathsAreRefused) {
  for (const char* path : {"/etc/passwd", "..", "a/../b", "a//b", "./a", "a/"}) {
    EXPECT_FALSE(parse_entry(to_line(file(path, "x")))) << path;
  }
  std::string with_nul = to_line(file("a-b", "x"));
  with_nul.replace(with_nul.find("a-b"), 3, "a%00b");
  EXPECT_FALSE(parse_entry(with_nul));
  with_nul = to_line(sample().entries[2]);
  with_nul.replace(with_nul.find("../"), 3, "%00");
  EXPECT_FALSE(parse_entry(with_nul));
  Manifest twice = sample();
  twice.entries.push_back(twice.entries.back());
  EXPECT_FALSE(parse_manifest(to_text(twice)));
}

std::vector<JournalLine> lines_of(std::string_view text) {
  std::vector<JournalLine> lines;
  parse_journal(text, [&](JournalLine line) { lines.push_back(std::move(line)); });
  return lines;
}

TEST(Journal, ReadsCompleteLinesAndStopsAtATornOne) {
  const TempFolder folder;
  RunEnd end;
  const Digest digest{1, 2};
  const JournalLine kept{JournalLine::Kind::Finished, file("kept", "1"), 0, {}};
  const JournalLine added{JournalLine::Kind::Finished, file("ad\nded", "22"), 0, {}};
  const JournalLine started{JournalLine::Kind::Started, file("large file", "333"), 0, {}};
  JournalLine piece{JournalLine::Kind::Piece, {}, 7, digest};
  piece.entry.path = started.entry.path;
  const UniqueFd root(::open(folder.path().c_str(), O_RDONLY | O_DIRECTORY));
  {
    auto journal = Journal::start(
        folder / "j", [&](const JournalSink& sink) { sink(kept); }, root.get(), end);
    ASSERT_OK(journal);
    (*journal)->started(started.entry);
    (*journal)->piece(started.entry, 7, digest);
    (*journal)->finished(added.entry);
    ASSERT_OK((*journal)->close());
  }
  const std::string text = read_text(folder / "j");
  EXPECT_EQ(lines_of(text), (std::vector{kept, started, piece, added}));
  EXPECT_EQ(lines_of(text.substr(0, text.size() - 1)), (std::vector{kept, started, piece}));
  std::string changed = text;
  changed[text.find("kept")] = 'K';
  EXPECT_TRUE(lines_of(changed).empty());
  EXPECT_TRUE(lines_of("").empty());
  std::size_t found = 0;
  read_journal(folder / "j", [&](const JournalLine&) { ++found; });
  read_journal(folder / "none", [&](const JournalLine&) { ++found; });
  EXPECT_EQ(found, 4U);
}

TEST(Throttle, SpreadsBytesOverTime) {
  using std::chrono::milliseconds;
  Throttle throttle(1000);
  const SteadyTime start{std::chrono::hours(1)};
  EXPECT_EQ(throttle.book(100, start), milliseconds(0));
  EXPECT_EQ(throttle.book(100, start), milliseconds(100));
  EXPECT_EQ(throttle.book(500, start + milliseconds(50)), milliseconds(150));
  EXPECT_EQ(throttle.book(1, start + milliseconds(5000)), milliseconds(0)) << "idle time is not saved up";
  EXPECT_EQ(Throttle(0).book(1 << 30, start), milliseconds(0));
}

TEST(Throttle, UrgentBytesWaitForUrgentOnesAlone) {
  using std::chrono::milliseconds;
  Throttle throttle(1000);
  const SteadyTime start{std::chrono::hours(1)};
  EXPECT_EQ(throttle.book(500, start), milliseconds(0));
  EXPECT_EQ(throttle.book(500, start), milliseconds(500));
  EXPECT_EQ(throttle.book(100, start, true), milliseconds(0));
  EXPECT_EQ(throttle.book(100, start, true), milliseconds(100));
  EXPECT_EQ(throttle.book(100, start), milliseconds(1200)) << "the others pay for them";
  EXPECT_EQ(throttle.book(100, start + milliseconds(5000), true), milliseconds(0));
  EXPECT_EQ(throttle.book(100, start + milliseconds(5000)), milliseconds(100));
  EXPECT_EQ(Throttle(0).book(1 << 30, start, true), milliseconds(0));
}

// Moves pieces when the throttle allows, until `end`; returns the bytes moved by then.
Bytes move_until(Throttle& throttle, SteadyTime& now, SteadyTime end, Bytes most) {
  Bytes moved = 0;
  while (moved < most) {
    const auto wait = throttle.book(65'536, now);
    if (now + wait > end) break;
    now += wait;
    moved += 65'536;
  }
  now = std::max(now, end);
  return moved;
}

TEST(Throttle, FinishesByATimeAtTheLowestRate) {
  using std::chrono::seconds;
  Throttle throttle(0);
  SteadyTime now{};
  throttle.finish_by(SteadyTime{seconds(100)}, 100'000'000);
  EXPECT_NEAR(static_cast<double>(move_until(throttle, now, SteadyTime{seconds(50)}, 100'000'000)), 50e6,
              3 * 65'536);
  now += seconds(25);  // a stall: half of the data is left for a quarter of the time
  const Bytes rest = move_until(throttle, now, SteadyTime{seconds(87)}, 50'000'000);
  EXPECT_NEAR(static_cast<double>(rest), 24e6, 3e6);
  (void)move_until(throttle, now, SteadyTime{seconds(100)}, 50'000'000);
  EXPECT_EQ(throttle.book(1 << 30, now + seconds(1)).count(), 0) << "too late: as fast as it goes";
}

TEST(Throttle, TenSecondsMoveTenTimesTheRate) {
  Throttle throttle(1'000'000);
  SteadyTime now{};
  Bytes moved = 0;
  while (now < SteadyTime{std::chrono::seconds(10)}) {
    now += throttle.book(65'536, now);
    moved += 65'536;
  }
  EXPECT_NEAR(static_cast<double>(moved), 10e6, 2 * 65'536);
}

}  // namespace
}  // namespace spark::staging
