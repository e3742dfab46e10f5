// What happens to the sources: other hosts and users write there, and their mounts come and go.
#include "tests/histories/copies/world/world.hpp"

namespace spark::histories::copies {
namespace {

struct Chosen {
  Source& source;
  std::string path;
};

// None if the source is empty.
std::optional<Chosen> choose(CopiesWorld& world, const Step& step) {
  Source& source = world.source(step.dice[0]);
  const auto files = source.files();
  if (files.empty()) return std::nullopt;
  return Chosen{source, files[step.dice[1] % files.size()]};
}

void told(CopiesWorld& world, const Chosen& chosen, const std::string& what) {
  world.scene().tell("in the source of " + chosen.source.name() + ", " + chosen.path + " " + what);
}

void rewrite(CopiesWorld& world, const Step& step) {
  const auto chosen = choose(world, step);
  if (!chosen) return;
  Scene& scene = world.scene();
  const Bytes size = chosen->source.now(chosen->path).content->size();
  const bool keeps_size = step.dice[2] % 2 == 0, keeps_mtime = step.dice[2] % 8 == 2;
  const Bytes new_size = keeps_size ? size : 1 + step.dice[2] % (40 * kKiB);
  told(world, *chosen,
       std::string("is rewritten") + (keeps_size ? " with the same size" : "") +
           (keeps_mtime ? ", and its old time put back" : ""));
  chosen->source.rewrite(chosen->path, new_content(world.new_number(), new_size), keeps_mtime,
                         scene.time.now(), scene.other_wall());
}

void replace(CopiesWorld& world, const Step& step) {
  const auto chosen = choose(world, step);
  if (!chosen) return;
  Scene& scene = world.scene();
  told(world, *chosen, "is replaced by a new file");
  const Bytes size = chosen->source.now(chosen->path).content->size();
  chosen->source.replace(chosen->path, new_content(world.new_number(), size), scene.time.now(),
                         scene.other_wall());
}

void add(CopiesWorld& world, const Step& step) {
  Source& source = world.source(step.dice[0]);
  Scene& scene = world.scene();
  const std::string path = "new/g" + std::to_string(step.dice[1] % 5);
  if (!source.between(path, scene.time.now(), scene.time.now()).empty()) return;
  told(world, {source, path}, "is added");
  source.add(path, {new_content(world.new_number(), 1 + step.dice[2] % (40 * kKiB)), ""}, scene.time.now(),
             scene.other_wall());
}

void remove(CopiesWorld& world, const Step& step) {
  const auto chosen = choose(world, step);
  if (!chosen || chosen->source.files().size() < 2) return;
  told(world, *chosen, "is removed");
  chosen->source.remove(chosen->path, world.scene().time.now(), world.scene().other_wall());
}

void touch(CopiesWorld& world, const Step& step) {
  const auto chosen = choose(world, step);
  if (!chosen) return;
  told(world, *chosen, "is touched");
  chosen->source.touch(chosen->path, world.scene().other_wall());
}

void change_mode(CopiesWorld& world, const Step& step) {
  const auto chosen = choose(world, step);
  if (!chosen) return;
  told(world, *chosen, "gets another mode");
  chosen->source.change_mode(chosen->path, step.dice[2] % 2 == 0 ? 0640 : 0444, world.scene().other_wall());
}

void change_note(CopiesWorld& world, const Step& step) {
  const auto chosen = choose(world, step);
  if (!chosen) return;
  Scene& scene = world.scene();
  const std::string value = step.dice[2] % 3 == 0 ? "" : step.dice[2] % 3 == 1 ? "m" : "o";
  told(world, *chosen, value.empty() ? "loses its attribute" : "gets the attribute " + value);
  chosen->source.change_note(chosen->path, value, scene.time.now(), scene.other_wall());
}

void pass_through(CopiesWorld& world, const Step& step) {
  Source& source = world.source(step.dice[0]);
  world.scene().tell("in the source of " + source.name() + ", a file is made and removed again");
  source.pass_through(world.scene().other_wall());
}

void put_mount_back(CopiesWorld& world, const std::string& disk) {
  if (world.scene().drives.mounted(disk) == Mounted::Right) return;
  world.scene().tell("the disk with " + disk + " is mounted again");
  world.requests().note_unmounted(disk);
  world.scene().drives.mount(disk, Mounted::Right);
}

// Away, or another disk there; until it is put back, by the same step or after a while.
void change_mount(CopiesWorld& world, const Step& step) {
  Scene& scene = world.scene();
  const std::string disk = world.source(step.dice[0]).place().disk;
  if (scene.drives.mounted(disk) != Mounted::Right) return put_mount_back(world, disk);
  const bool is_other = step.dice[1] % 3 == 0;
  scene.tell(is_other ? "another disk is mounted at the place of " + disk
                      : "the disk with " + disk + " is no longer mounted");
  world.requests().note_unmounted(disk);
  scene.drives.mount(disk, is_other ? Mounted::Other : Mounted::Nothing);
  if (step.dice[2] % 3 == 0) return;
  const SteadyTime then = scene.time.now() + std::chrono::seconds(step.dice[2] / 3 % 200);
  scene.time.call_at(then, [&world, disk] { put_mount_back(world, disk); });
}

}  // namespace

std::vector<StepRow> source_steps() {
  return {{"rewrite", 8, rewrite},
          {"replace", 3, replace},
          {"add", 3, add},
          {"remove", 2, remove},
          {"touch", 1, touch},
          {"change-mode", 1, change_mode},
          {"change-note", 1, change_note},
          {"pass-through", 2, pass_through},
          {"change-mount", 4, change_mount}};
}

}  // namespace spark::histories::copies
