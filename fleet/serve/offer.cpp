#include "fleet/serve/offer.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>

#include "fleet/adopted/offer_file.hpp"
#include "fleet/serve/shown_unit.hpp"
#include "fleet/serve/unit_reader.hpp"
#include "staging/files/source_trouble.hpp"
#include "staging/manifest/manifest_reader.hpp"

namespace spark::fleet {
namespace {

tl::unexpected<Error> not_there() {
  return fail(Errc::NotFound, "this host does not have that unit");
}

Result<UnitBody> to_result(UnitRead<UnitBody> body) {
  if (body) return std::move(*body);
  return fail(Errc::NotFound, "the unit can't be read here");
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

// By its number among those with content.
std::optional<staging::Entry> entry_of(const std::filesystem::path& manifest, std::uint64_t file) {
  auto entries = staging::ManifestReader::open(manifest);
  if (!entries) return std::nullopt;
  while (auto entry = entries->next())
    if (staging::is_content(*entry) && file-- == 0) return entry;
  return std::nullopt;
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
    return to_result(
        reader_.read_pack(unit, buffer, [this](std::uint64_t small) { return board_->small_digest(small); }));
  }
  Result<UnitBody> read_piece(std::uint64_t unit, const staging::IoBuffer& buffer) const {
    auto body = to_result(reader_.read_piece(unit, buffer));
    // A source's attributes are set last, so they are not known yet. Peers send none.
    if (body && board_->reads() != SetState::Reads::Never) body->is_plain = false;
    return body;
  }
};

class PublishedOffer final : public Offer {
 public:
  // `version`: of an adopted folder's manifest, which is `copy` then; none: it is a copy of this host.
  PublishedOffer(UnitReader reader, std::vector<staging::Digest> hashes, std::filesystem::path copy,
                 std::string hash, std::optional<OfferVersion> version = {})
      : reader_(std::move(reader)),
        hashes_(std::move(hashes)),
        copy_(std::move(copy)),
        hash_(std::move(hash)),
        version_(version) {}

  SetState state() const override {
    return {.kind = SetState::Kind::Published, .unit_count = reader_.layout().units(), .hash = hash_};
  }
  Result<UnitBody> read(std::uint64_t unit, const staging::IoBuffer& buffer) const override {
    if (unit >= reader_.layout().units() || (version_ && !is_current())) return not_there();
    auto body = read_unit(unit, buffer);
    if (!body && version_ && is_current()) end(body.error());
    return to_result(std::move(body));
  }
  std::uint64_t files() const override { return reader_.layout().files(); }
  bool is_current() const override {
    if (version_) return version_->is_there() && version_of(copy_) == *version_;
    return ::access(copy_.c_str(), F_OK) == 0;
  }
  std::filesystem::path copy() const override { return copy_; }

 private:
  UnitReader reader_;
  std::vector<staging::Digest> hashes_;  // one for each file
  std::filesystem::path copy_;
  std::string hash_;
  std::optional<OfferVersion> version_;  // of the manifest that was read

  UnitRead<UnitBody> read_unit(std::uint64_t unit, const staging::IoBuffer& buffer) const {
    const Layout& layout = reader_.layout();
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

  // The offer of an adopted folder. Damage stays damage at the next look; anything else may pass.
  void end(const UnitTrouble& trouble) const {
    const auto entry = staging::is_medium_error(trouble.error) ? entry_of(copy_, trouble.file)
                                                               : std::optional<staging::Entry>();
    if (!entry || !note_damaged(copy_, {{*entry, trouble.error}})) set_aside(copy_);
  }
};

}  // namespace

SetState state_of(const Board& board) {
  const std::uint64_t units = board.size().units;
  if (board.is_done()) return {.kind = SetState::Kind::Published, .unit_count = units};
  if (!board.is_alive()) return {};
  SetState state{.kind = SetState::Kind::Staging, .unit_count = units, .reads = board.reads()};
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
  auto listed = read_files(manifest);
  auto offered = listed ? staging::ManifestReader::open(manifest) : listed.take_error();
  auto then = offered ? look_at_offered(folder, *offered, StopFlag{false}) : offered.take_error();
  if (!then) return then.take_error();
  if (!then->is_same) {
    set_aside(manifest);
    return not_there();
  }
  const staging::Model& model = then->now.walked;
  for (ListedFile& file : listed->files)
    if (!model.ref.empty() && file.path == std::string_view(model.ref)) file.content = model.record.revision;
  UnitReader reader(std::move(then->now.tree), std::move(listed->files), std::move(listed->identities));
  return std::make_shared<PublishedOffer>(std::move(reader), std::move(listed->hashes), manifest,
                                          std::move(hash), version);
}

}  // namespace spark::fleet
