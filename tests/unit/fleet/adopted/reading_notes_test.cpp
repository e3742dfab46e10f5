#include "fleet/adopted/reading_notes.hpp"

#include <gmock/gmock.h>

#include "fleet/adopted/folder_hash.hpp"
#include "tests/unit/fleet/adopted/adopted_fixture.hpp"

using namespace spark;
using namespace spark::fleet;
using spark::fleet::test::AdoptedFixture;
using testing::ElementsAre;

namespace {

class ReadingNotesTest : public AdoptedFixture {
 protected:
  const std::filesystem::path notes_ = notes_of(offer());

  // A worker that is ended before it can make an offer of what it has read.
  staging::Manifest read() {
    auto now = look_at(adopted_, stop_);
    auto manifest = hash_folder(adopted_, std::move(*now), notes_, stop_);
    EXPECT_TRUE(manifest) << manifest.error().message();
    return std::move(*manifest);
  }
  std::vector<std::string> noted(const std::string& of) const {
    std::vector<std::string> paths;
    read_notes(notes_, of, [&](const ReadingNote& note) { paths.emplace_back(note.entry.path.view()); });
    return paths;
  }
  std::string description() const {
    const auto now = look_at(adopted_, StopFlag{false});
    return json::serialize(json::array{definition_of(adopted_), now->tree.file_system});
  }
  // So that the notes, and not the file, decide what its hash is.
  void write_note(const staging::Entry& like) {
    staging::Entry entry = like;
    entry.hash = {1, 2};
    ReadingNotes(notes_, description(), [](const auto&) {}).add({entry, "", ""});
  }
  static staging::Entry entry(const staging::Manifest& manifest, const std::string& path) {
    return *std::ranges::find(manifest.entries, path,
                              [](const staging::Entry& one) { return std::string(one.path.view()); });
  }
};

TEST_F(ReadingNotesTest, AnInterruptedReadingIsResumedWithTheFilesThatAreLeft) {
  const staging::Manifest whole = read();
  EXPECT_THAT(noted(description()), ElementsAre("large")) << "small files are read as fast as their notes";
  std::filesystem::remove(notes_);
  write_note(entry(whole, "large"));
  EXPECT_EQ(entry(read(), "large").hash, (staging::Digest{1, 2})) << "it was not read again";
  flip(path_ / "large");
  EXPECT_NE(entry(read(), "large").hash, (staging::Digest{1, 2})) << "it has changed since";
}

TEST_F(ReadingNotesTest, NotesOfAnotherDefinitionAndDamagedOnesCountForNothing) {
  const staging::Manifest whole = read();
  std::filesystem::remove(notes_);
  write_note(entry(whole, "large"));
  const std::string text = read_file(notes_).value();
  EXPECT_THAT(noted("another folder"), ElementsAre());
  std::string damaged = text;
  damaged[damaged.size() - 10] ^= 1;
  ASSERT_TRUE(write_file_atomically(notes_, damaged));
  EXPECT_THAT(noted(description()), ElementsAre());
  ASSERT_TRUE(write_file_atomically(notes_, text.substr(0, text.size() - 5)));
  EXPECT_THAT(noted(description()), ElementsAre());
  EXPECT_EQ(entry(read(), "large").hash, entry(whole, "large").hash);
  EXPECT_THAT(noted(description()), ElementsAre("large")) << "they are begun again";
}

TEST_F(ReadingNotesTest, ANewFileIsReadAndNoOtherOne) {
  Adoption adoption(adopted_, state_dir_, clock_);
  adopt(adoption);
  auto offered = staging::ManifestReader::open(offer());
  while (const auto one = offered->next())
    if (one->path.view() == "large") write_note(*one);
  write("new", std::string(kMiB, 'n'));
  look(adoption);
  adopt(adoption);
  std::map<std::string, staging::Digest> hashes;
  auto now = staging::ManifestReader::open(offer());
  while (const auto one = now->next()) hashes[std::string(one->path.view())] = one->hash;
  EXPECT_EQ(hashes["large"], (staging::Digest{1, 2})) << "it was read again";
  EXPECT_NE(hashes["new"], staging::Digest());
}

TEST_F(ReadingNotesTest, NotesOfFilesThatAreGoneDoNotAddUp) {
  read();
  const auto size = std::filesystem::file_size(notes_);
  for (int i = 0; i < 30; ++i) {
    flip(path_ / "large");
    read();
  }
  EXPECT_LT(std::filesystem::file_size(notes_), 2 * size);
  EXPECT_THAT(noted(description()), testing::Contains("large"));
}

TEST_F(ReadingNotesTest, AModelsDigestsAreComparedOnlyOnce) {
  staging::test::MadeHub hub(folder_ / "hub");
  hub.files["big.bin"] = std::string(2 * kMiB, 'b');
  hub.make("org/tiny", staging::test::HubLayout::Shared);
  adopted_.path = hub.folder();
  adopted_.model = staging::ModelOptions{"org/tiny"};
  const staging::Manifest first = read();
  EXPECT_EQ(noted(description()).size(), 1u);
  const staging::Manifest resumed = read();
  EXPECT_EQ(resumed.model, first.model) << "also the pin, for which all SHA-256 are needed";
  EXPECT_EQ(staging::summary_of(resumed.entries).hash, staging::summary_of(first.entries).hash);
}

}  // namespace
