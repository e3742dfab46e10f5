// The closing steps, what they copy, and the way back.
#include <gtest/gtest.h>

#include <cstdlib>
#include <regex>

#include "base/text.hpp"
#include "daemon/config/parse.hpp"
#include "migration/import.hpp"
#include "migration/undo.hpp"
#include "tests/support/host_by_hand.hpp"

namespace spark::host {
namespace {

namespace fs = std::filesystem;

const std::string kUnit = "etc/systemd/system/nvme-rosa-connect.service";
const std::string kWish = "etc/systemd/system/multi-user.target.wants/nvme-rosa-connect.service";

class Move : public ::testing::Test {
 protected:
  Move() { test::set_up_by_hand(host); }

  Imported import(int second = 0) {
    return import_configuration(host.root(), survey(host.root()), WallTime{} + std::chrono::seconds(second));
  }

  std::string text(const std::string& file) { return read_file(host.root() / file).value_or("(none)"); }

  // In this host's folder, with commands that change nothing else; returns sh's status.
  int take_steps(const std::string& yaml) {
    // Of the lines on stdin, with -F.
    std::string script =
        "findmnt() { if [ $1 = -M ]; then ! [ -e unmounted/$2 ]; else awk -v at=\"$5\" '!/^#/ && $2 == at { "
        "n++ } END { exit !n }'; fi; }; systemctl() { " +
        systemctl + "; }\n umount() { [ $1 != '" + busy + "' ] && mkdir -p unmounted/$1; }\n";
    for (const std::string& line : split(yaml, '\n')) {
      if (!line.starts_with("#   ") || line.starts_with("#   spark-stage") || line == "#   cd /") continue;
      script += std::regex_replace(line.substr(4), std::regex(" /(etc|var)/"), " $1/") + "\n";
    }
    host.write("steps.sh", script);
    return std::system(("cd '" + host.root().path.native() + "' && sh -e ./steps.sh 2>said").c_str());
  }

  test::FakeSysfs host;
  std::string busy, systemctl = ":";
};

TEST_F(Move, ASecondMoveHasCopiesOfItsOwnAndIsUndoneFirst) {
  const std::string first = text("etc/fstab");
  EXPECT_EQ(take_steps(import(1).yaml), 0);
  host.write("etc/fstab", text("etc/fstab") + "nas:/new /mnt/new nfs4 _netdev 0 0");
  const std::string second = text("etc/fstab");
  EXPECT_EQ(take_steps(import(2).yaml), 0);
  EXPECT_NE(text("etc/fstab"), second);
  const auto undone = undo_import(host.root());
  ASSERT_TRUE(undone);
  EXPECT_EQ(undone->earlier, rfc3339(WallTime(std::chrono::seconds(1)))) << "spark-staged is still needed";
  EXPECT_EQ(text("etc/fstab"), second);
  EXPECT_EQ(text(kUnit), "(none)");
  const auto first_undone = undo_import(host.root());
  ASSERT_TRUE(first_undone);
  EXPECT_EQ(first_undone->earlier, "");
  EXPECT_EQ(text("etc/fstab"), first);
  EXPECT_NE(text(kUnit), "(none)");
  EXPECT_EQ(undo_import(host.root()).error().kind, Errc::NotFound);
}

TEST_F(Move, ALineAddedToFstabAfterTheImportMovesNoOtherLine) {
  const std::string yaml = import().yaml;
  const std::string fstab(trim(text("etc/fstab")));
  host.write("etc/fstab", "tmpfs /scratch tmpfs size=1g 0 0\n" + fstab);
  EXPECT_EQ(take_steps(yaml), 0);
  const auto before = split(fstab, '\n'), after = split(text("etc/fstab"), '\n');
  ASSERT_GT(after.size(), before.size());
  EXPECT_EQ(after[0], "tmpfs /scratch tmpfs size=1g 0 0");
  EXPECT_EQ(after[1], before[0]);
  for (const std::size_t line : {1, 2, 3}) EXPECT_EQ(after[line + 1], "#" + before[line]);
}

TEST_F(Move, ALineThatWasEditedAfterTheImportEndsTheStepsBeforeTheyChangeAnything) {
  const std::string yaml = import().yaml;
  const std::string edited =
      std::regex_replace(text("etc/fstab"), std::regex("(rosa-models ext4) defaults"), "$1 nofail");
  host.write("etc/fstab", edited);
  const std::string fstab = text("etc/fstab");
  EXPECT_NE(take_steps(yaml), 0);
  EXPECT_NE(text("said").find("the line of /mnt/rosa-models "), std::string::npos) << text("said");
  EXPECT_NE(text("said").find("has changed since the import"), std::string::npos) << text("said");
  EXPECT_EQ(text("etc/fstab"), fstab);
  EXPECT_NE(text(kUnit), "(none)");
  EXPECT_FALSE(fs::exists(host.root() / "var/lib/spark-stage/before-import"));
}

// The copy would be mounted beside the volume at the next boot.
TEST_F(Move, ALineThatIsACommentWithAChangedCopyEndsTheStepsBeforeTheyChangeAnything) {
  const std::string yaml = import().yaml;
  host.write("etc/fstab",
             std::regex_replace(text("etc/fstab"), std::regex("\n(.* /mnt/rosa-models ext4) (.*)"),
                                "\n#$1 $2\n$1 nofail,$2"));
  const std::string fstab = text("etc/fstab");
  EXPECT_NE(take_steps(yaml), 0) << fstab;
  EXPECT_NE(text("said").find("another line of /mnt/rosa-models "), std::string::npos) << text("said");
  EXPECT_EQ(text("etc/fstab"), fstab);
  EXPECT_FALSE(fs::exists(host.root() / "var/lib/spark-stage/before-import"));
}

// Its second server, say.
TEST_F(Move, AnotherLineWithNoautoAtTheImportIsNoObstacle) {
  for (const bool is_first : {false, true}) {
    const std::string other = "192.168.0.99:/data/shared /mnt/dell-shared nfs4 rw,noauto 0 0";
    const std::string used = "192.168.0.98:/data/shared /mnt/dell-shared nfs4 rw,_netdev 0 0";
    host.write("etc/fstab", is_first ? other + "\n" + used : used + "\n" + other);
    const std::string yaml = import(is_first ? 1 : 0).yaml;
    EXPECT_NE(yaml.find("\n    nfs: \"192.168.0.98:/data/shared\""), std::string::npos) << yaml;
    EXPECT_EQ(take_steps(yaml), 0) << text("said");
    EXPECT_EQ(text("etc/fstab"), (is_first ? other + "\n#" + used : "#" + used + "\n" + other) + "\n");
  }
}

TEST_F(Move, ALineThatWasAddedBesideAnotherOneEndsTheStepsBeforeTheyChangeAnything) {
  const std::string lines =
      "192.168.0.98:/data/shared /mnt/dell-shared nfs4 rw,_netdev 0 0\n"
      "192.168.0.99:/data/shared /mnt/dell-shared nfs4 rw,noauto 0 0";
  host.write("etc/fstab", lines);
  const std::string yaml = import().yaml;
  host.write("etc/fstab", lines + "\n192.168.0.97:/data/shared /mnt/dell-shared nfs4 rw 0 0");
  EXPECT_NE(take_steps(yaml), 0);
  EXPECT_NE(text("said").find("another line of /mnt/dell-shared than at the import"), std::string::npos);
  EXPECT_FALSE(fs::exists(host.root() / "var/lib/spark-stage/before-import"));
}

TEST_F(Move, LinesOfOneMountPointAreLeftOutAndNamed) {
  host.write("etc/fstab",
             "192.168.0.98:/data/shared /mnt/dell-shared nfs4 rw,_netdev 0 0\n"
             "192.168.0.99:/data/shared /mnt/dell-shared nfs4 rw 0 0");
  const std::string fstab = text("etc/fstab"), yaml = import().yaml;
  for (const char* other : {"line 1", "line 2"}) {
    EXPECT_NE(yaml.find(std::string(other) + " of /etc/fstab also mounts there: remove one of the two"),
              std::string::npos)
        << yaml;
  }
  EXPECT_EQ(take_steps(yaml), 0) << text("said");
  EXPECT_EQ(text("etc/fstab"), fstab);
}

TEST_F(Move, StepsThatAreBegunOnceMoreAfterTheirEndUnmountNothing) {
  const std::string yaml = import().yaml;
  ASSERT_EQ(take_steps(yaml), 0) << text("said");
  fs::remove_all(host.root() / "unmounted");  // spark-staged has mounted its volumes
  EXPECT_NE(take_steps(yaml), 0);
  EXPECT_FALSE(fs::exists(host.root() / "unmounted"));
  EXPECT_NE(text("said").find("these steps were begun before: go on with the one that failed"),
            std::string::npos)
      << text("said");
}

TEST_F(Move, StepsWithoutAFileToChangeAreTakenOnce) {
  fs::remove(host.root() / kUnit);
  host.write("etc/fstab", "");
  const std::string yaml = import().yaml;
  ASSERT_EQ(take_steps(yaml), 0) << text("said");
  ASSERT_TRUE(fs::exists(host.root() / "unmounted")) << yaml;
  fs::remove_all(host.root() / "unmounted");
  EXPECT_NE(take_steps(yaml), 0);
  EXPECT_FALSE(fs::exists(host.root() / "unmounted"));
}

TEST_F(Move, UndoOfAMoveThatChangedNoFileRestoresNothingAndNamesTheEarlierOnes) {
  const std::string folder = "var/lib/spark-stage/before-import/";
  host.write(folder + "2026-11-01T00:00:00Z/etc/fstab", "old");
  host.write("etc/fstab", "new");
  fs::create_directories(host.root() / (folder + "2026-11-02T00:00:00Z/etc"));
  const auto undone = undo_import(host.root());
  ASSERT_FALSE(undone);
  EXPECT_EQ(undone.error().kind, Errc::NotFound);
  EXPECT_EQ(undone.error().what,
            "the last move (2026-11-02T00:00:00Z) changed no file; copies of earlier moves are in "
            "/var/lib/spark-stage/before-import: 2026-11-01T00:00:00Z");
  EXPECT_EQ(text("etc/fstab"), "new\n");
  EXPECT_FALSE(fs::exists(host.root() / (folder + "2026-11-02T00:00:00Z")));
  ASSERT_TRUE(undo_import(host.root()));
  EXPECT_EQ(text("etc/fstab"), "old\n");
  fs::create_directories(host.root() / (folder + "2026-11-03T00:00:00Z"));
  const auto last = undo_import(host.root());
  EXPECT_EQ(last.error().what, "the last move (2026-11-03T00:00:00Z) changed no file");
  EXPECT_FALSE(fs::exists(host.root() / folder));
}

TEST_F(Move, StepsThatEndedAtABusyMountAreBegunAgain) {
  const std::string yaml = import().yaml, fstab = text("etc/fstab");
  busy = "/mnt/rosa-models";
  EXPECT_NE(take_steps(yaml), 0);
  EXPECT_EQ(text("etc/fstab"), fstab);
  busy.clear();
  EXPECT_EQ(take_steps(yaml), 0) << text("said");
  EXPECT_NE(text("etc/fstab"), fstab);
  ASSERT_TRUE(undo_import(host.root()));
  EXPECT_EQ(text("etc/fstab"), fstab);
}

TEST_F(Move, AnyStepThatFailsEndsThem) {
  const std::string yaml = import().yaml;
  systemctl = "[ $1 != disable ]";
  EXPECT_NE(take_steps(yaml), 0) << "the unit is not disabled";
  EXPECT_NE(text(kUnit), "(none)");
  systemctl = ":";
  EXPECT_NE(take_steps(yaml), 0) << "there are copies of this import already";
  EXPECT_NE(text(kUnit), "(none)");
}

TEST_F(Move, ALineThatIsACommentAlreadyIsNoObstacle) {
  const std::string yaml = import().yaml;
  const std::string fstab =
      std::regex_replace(text("etc/fstab"), std::regex("\n/dev/nvme1n1"), "\n#/dev/nvme1n1");
  host.write("etc/fstab", fstab);
  EXPECT_EQ(take_steps(yaml), 0) << text("said");
  EXPECT_NE(text("etc/fstab").find("\n#/dev/nvme1n1"), std::string::npos);
  EXPECT_NE(text("etc/fstab").find("\n#/dev/nvme3n1"), std::string::npos);
}

TEST_F(Move, LinesWithSpecialCharactersAreFound) {
  host.write("etc/fstab",
             "10.0.0.1:/a\t/mnt/a\\040b  nfs4 ro,_netdev,noatime 0 0 \n"
             "nas:/d\xc3\xa4ta|x /mnt/it's nfs4 ro,_netdev 0 0\n10x0y0z1:/a /mnt/o ext4 ro 0 0");
  const auto before = split(text("etc/fstab"), '\n');
  const std::string yaml = import().yaml;
  EXPECT_TRUE(config::parse(yaml, "x")) << yaml;
  EXPECT_EQ(take_steps(yaml), 0);
  const auto after = split(text("etc/fstab"), '\n');
  for (const std::size_t line : {0, 1}) EXPECT_EQ(after[line], "#" + before[line]) << yaml;
  EXPECT_EQ(after[2], before[2]);
}

TEST_F(Move, UndoNeverReplacesAFileThatItHasSetAside) {
  host.write("var/lib/spark-stage/before-import/etc/fstab", "old");
  host.write("etc/fstab", "new");
  host.write("etc/fstab.before-undo", "precious");
  ASSERT_TRUE(undo_import(host.root()));
  EXPECT_EQ(text("etc/fstab.before-undo"), "precious\n");
  EXPECT_EQ(text("etc/fstab.before-undo.2"), "new\n");
}

TEST_F(Move, UndoEnablesOnlyWhatWasEnabled) {
  EXPECT_EQ(take_steps(import(1).yaml), 0);
  const auto unused = undo_import(host.root());
  ASSERT_TRUE(unused) << unused.error().message();
  EXPECT_TRUE(unused->units.empty());
  fs::create_directories((host.root() / kWish).parent_path());
  fs::create_symlink("../nvme-rosa-connect.service", host.root() / kWish);
  EXPECT_EQ(take_steps(import(2).yaml), 0);
  fs::remove(host.root() / kWish);  // systemctl disable
  const auto undone = undo_import(host.root());
  ASSERT_TRUE(undone) << undone.error().message();
  EXPECT_EQ(undone->units, std::vector<std::string>{"nvme-rosa-connect.service"});
  EXPECT_EQ(fs::read_symlink(host.root() / kWish), "../nvme-rosa-connect.service");
}

TEST_F(Move, ALinkAsAMountPointIsTheMountThatItLeadsTo) {
  fs::create_directories(host.root() / "srv");
  fs::create_symlink("/srv/real", host.root() / "data");
  host.write("etc/fstab", "UUID=2f7c3a52-6f0e-4c55-9a55-0d4a6c1de5b7 /data ext4 rw,_netdev 0 0");
  host.write("proc/self/mountinfo", "30 21 259:1 / /srv/real rw - ext4 /dev/nvme1n1 rw");
  const std::string yaml = import().yaml;
  EXPECT_NE(yaml.find("    mount: /srv/real\n"), std::string::npos) << yaml;
  EXPECT_NE(yaml.find(" && umount /srv/real\n"), std::string::npos) << yaml;
  EXPECT_EQ(yaml.find("Not taken over: namespace"), std::string::npos) << yaml;
}

TEST_F(Move, WhatFstabSaidAboutTheBootIsNamed) {
  host.write("etc/fstab",
             "/dev/nvme1n1 /mnt/rosa-storage ext4 ro,noauto,_netdev,x-systemd.before=docker.service 0 0\n"
             "nas:/a /mnt/a nfs4 ro,_netdev,x-systemd.required-by=docker.service 0 0");
  const std::string yaml = import().yaml;
  for (const char* option :
       {"noauto", "x-systemd.before=docker.service", "x-systemd.required-by=docker.service"})
    EXPECT_NE(yaml.find(std::string("# left out: ") + option + " - "), std::string::npos) << yaml;
}

TEST_F(Move, WhatIsInNoFileOfThisHostIsNamed) {
  host.write("etc/fstab", "");
  host.write("etc/stas/stafd.conf", "[Controllers]\ncontroller = transport=tcp;traddr=10.0.0.5;trsvcid=8009");
  host.write("proc/self/mountinfo",
             "40 21 0:50 / /mnt/nas rw - nfs4 nas:/x rw,vers=4.2\n41 21 0:51 / /net rw - autofs auto rw\n"
             "42 41 0:52 / /net/b rw - nfs4 b:/x rw");
  const Imported imported = import();
  EXPECT_NE(imported.yaml.find("# Not read: /etc/stas/stafd.conf"), std::string::npos) << imported.yaml;
  EXPECT_NE(imported.yaml.find("nas:/x on /mnt/nas is mounted by hand"), std::string::npos) << imported.yaml;
  EXPECT_EQ(imported.yaml.find("/net/b"), std::string::npos) << imported.yaml;
}

}  // namespace
}  // namespace spark::host
