#include "fleet/serve/offer.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>

#include "fleet/adopted/offer_file.hpp"
#include "fleet/serve/shown_unit.hpp"
#include "fleet/serve/unit_reader.hpp"
#include "staging/manifest/manifest_reader.hpp"

namespace spark::fleet {
namespace {

tl::unexpected<Error> not_there() {
  return fail(Errc::NotFound, "this host does not have that unit");
}

struct Listed {
  std::vector<ListedFile> files;
  std::vector<staging::Digest> hashes;
  std::vector<staging::SourceIdentity> identities;
};

Result<Listed> read_files(const std::filesystem::path& manifest) {
  auto entries = staging::ManifestReader::open(manifest);
  if (!entries) return entries.take_error();
  Listed listed;
  while (const auto entry = entries->next()) {
    if (!staging::is_content(*entry)) continue;
    listed.files.push_back({entry->path, entry->size, entry->lost_attributes});
    listed.hashes.push_back(entry->hash);
    listed.identities.push_back(staging::identity_of(*entry));
  }
  if (auto read = entries->error(); !read) return read.take_error();
  return listed;
}

class StagingOffer final : public Offer {
 public:
  StagingOffer(std::unique_ptr<Board> board, UnitReader reader)
      : board_(std::move(board)), reader_(std::move(reader)) {}

  SetState state() const override { return state_of(*board_); }
  std::uint64_t files() const override { return reader_.layout().files(); }

  Result<UnitBody> read(std::uint64_t unit, const staging::IoBuffer& buffer) const override {
    if (unit >= reader_.layout().units()) return not_there();
    return read_as_shown(*board_, unit, [&] {
      return reader_.layout().is_pack(unit) ? read_pack(unit, buffer) : read_piece(unit, buffer);
    });
  }

  void note_member(NodeId node) override { board_->note_member(node); }
  // A published copy is still open through its folder, which was only renamed.
  bool is_current() const override { return board_->is_done() ? reader_.is_there() : board_->is_alive(); }

 private:
  std::unique_ptr<Board> board_;
  UnitReader reader_;

  Result<UnitBody> read_pack(std::uint64_t unit, const staging::IoBuffer& buffer) const {
    return reader_.read_pack(unit, buffer,
                             [this](std::uint64_t small) { return board_->small_digest(small); });
  }
  Result<UnitBody> read_piece(std::uint64_t unit, const staging::IoBuffer& buffer) const {
    auto body = reader_.read_piece(unit, buffer);
    if (body) body->is_plain = false;  // attributes are set last, so they are not known yet
    return body;
  }
};

class PublishedOffer final : public Offer {
 public:
  PublishedOffer(UnitReader reader, std::vector<staging::Digest> hashes, std::filesystem::path copy,
                 std::string hash)
      : reader_(std::move(reader)),
        hashes_(std::move(hashes)),
        copy_(std::move(copy)),
        hash_(std::move(hash)) {}

  SetState state() const override {
    SetState state;
    state.kind = SetState::Kind::Published;
    state.unit_count = reader_.layout().units();
    state.hash = hash_;
    return state;
  }

  Result<UnitBody> read(std::uint64_t unit, const staging::IoBuffer& buffer) const override {
    const Layout& layout = reader_.layout();
    if (unit >= layout.units()) return not_there();
    if (layout.is_pack(unit)) {
      return reader_.read_pack(
          unit, buffer, [&](std::uint64_t small) { return std::optional(hashes_[layout.small(small)]); });
    }
    auto body = reader_.read_piece(unit, buffer);
    if (!body) return body;
    const Piece piece = layout.piece(unit);
    const bool is_whole = staging::piece_count(layout.size_of(piece.file)) == 1;
    (is_whole ? body->piece : body->file) = hashes_[piece.file];
    return body;
  }

  std::uint64_t files() const override { return reader_.layout().files(); }
  bool is_current() const override { return ::access(copy_.c_str(), F_OK) == 0; }
  std::filesystem::path copy() const override { return copy_; }

 private:
  UnitReader reader_;
  std::vector<staging::Digest> hashes_;  // one for each file
  std::filesystem::path copy_;
  std::string hash_;
};

class AdoptedOffer final : public Offer {
 public:
  AdoptedOffer(PublishedOffer files, std::filesystem::path manifest, OfferVersion version)
      : files_(std::move(files)), manifest_(std::move(manifest)), version_(version) {}

  SetState state() const override { return files_.state(); }
  std::uint64_t files() const override { return files_.files(); }
  bool is_current() const override { return version_.is_there() && version_of(manifest_) == version_; }
  std::filesystem::path copy() const override { return manifest_; }

  Result<UnitBody> read(std::uint64_t unit, const staging::IoBuffer& buffer) const override {
    if (!is_current()) return not_there();
    auto body = files_.read(unit, buffer);
    if (!body && unit < files_.state().unit_count && is_current()) set_aside(manifest_);
    return body;
  }

 private:
  PublishedOffer files_;
  std::filesystem::path manifest_;
  OfferVersion version_;  // of the manifest that was read
};

}  // namespace

SetState state_of(const Board& board) {
  SetState state;
  state.unit_count = board.size().units;
  if (board.is_done()) {
    state.kind = SetState::Kind::Published;
    return state;
  }
  if (!board.is_alive()) return {};
  state.kind = SetState::Kind::Staging;
  state.reads = board.reads();
  state.units.reserve(state.unit_count);
  for (std::uint64_t unit = 0; unit < state.unit_count; ++unit) state.units.push_back(board.unit(unit));
  return state;
}

Result<std::shared_ptr<Offer>> offer_of_board(const std::filesystem::path& boards, const std::string& set) {
  auto board = Board::open(boards, set);
  if (!board) return board.take_error();
  if (!(*board)->is_alive()) return not_there();
  auto listed = read_files(Board::entries_of(boards, set));
  if (!listed) return listed.take_error();
  auto tree = staging::open_tree((*board)->data());
  if (!tree) return tree.take_error();
  UnitReader reader(std::move(*tree), std::move(listed->files));
  const BoardSize& size = (*board)->size();
  if (reader.layout().units() != size.units || reader.layout().small_files() != size.small_files)
    return not_there();
  return std::make_shared<StagingOffer>(std::move(*board), std::move(reader));
}

Result<std::shared_ptr<Offer>> offer_of_copy(const std::filesystem::path& copy,
                                             const std::filesystem::path& manifest, std::string hash) {
  auto tree = staging::open_tree(copy);
  if (!tree) return tree.take_error();
  auto listed = read_files(manifest);
  if (!listed) return listed.take_error();
  return std::make_shared<PublishedOffer>(UnitReader(std::move(*tree), std::move(listed->files)),
                                          std::move(listed->hashes), copy, std::move(hash));
}

Result<std::shared_ptr<Offer>> offer_of_folder(const AdoptedFolder& folder,
                                               const std::filesystem::path& manifest, std::string hash) {
  const OfferVersion version = version_of(manifest);
  auto now = look_at(folder, StopFlag{false});
  auto listed = now ? read_files(manifest) : now.take_error();
  auto then = listed ? staging::ManifestReader::open(manifest) : listed.take_error();
  if (!then) return then.take_error();
  if (!staging::is_same_source(*then, now->walked.walked.entries)) {
    set_aside(manifest);
    return not_there();
  }
  UnitReader reader(std::move(now->tree), std::move(listed->files), std::move(listed->identities));
  PublishedOffer files(std::move(reader), std::move(listed->hashes), manifest, std::move(hash));
  return std::make_shared<AdoptedOffer>(std::move(files), manifest, version);
}

}  // namespace spark::fleet
