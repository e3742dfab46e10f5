#include "cli/command_line/manual.hpp"

#include <gtest/gtest.h>

#include "base/text.hpp"
#include "tests/unit/cli/fixture.hpp"

namespace spark::cli {
namespace {

std::string page_of(const std::string& frame) {
  App app;
  add_all_verbs(app);
  return app.manual(frame);
}

TEST(Manual, HasASectionForEachVerbThatIsInTheHelp) {
  App app;
  add_all_verbs(app);
  const std::string page = app.manual(".\\\" @VERBS@\n");
  for (const auto& verb : app.verbs()) {
    if (verb.size() == 1 && (verb[0] == "config" || verb[0] == "host" || verb[0] == "fleet"))
      continue;  // groups
    std::string title = ".SS \"spark\\-stage " + join(verb, " ");
    for (std::size_t at = title.find("new-"); at != std::string::npos; at = title.find("new-"))
      title.replace(at, 4, "new\\-");
    for (std::size_t at = title.find("stage-out"); at != std::string::npos; at = title.find("stage-out"))
      title.replace(at, 9, "stage\\-out");
    EXPECT_NE(page.find(title), std::string::npos) << title;
  }
  EXPECT_EQ(page.find("scrub\""), std::string::npos) << "an old spelling is in no help";
}

TEST(Manual, HasArgumentsOptionsExamplesAndNotes) {
  const std::string page = page_of(".\\\" @VERBS@\n");
  for (const char* part :
       {"\\fIDATASET\\fR\n", "\\fB\\-w\\fR, \\fB\\-\\-watch\\fR[=\\fISECONDS\\fR]\n",
        "\\fB\\-\\-max\\-rate\\fR \\fIRATE\\fR\n", ".nf\n  spark\\-stage run imagenet \\-\\- python train.py",
        "The exit status is the command\\(aqs"}) {
    EXPECT_NE(page.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(page.find("\\-\\-socket"), std::string::npos) << "the program's options are told once";
}

TEST(Manual, LeavesTheRestOfThePageAsItIs) {
  const std::string page = page_of(".TH X @VERSION@\n.SH OPTIONS\n.\\\" @OPTIONS@\n.SH END\n");
  EXPECT_TRUE(page.starts_with(".TH X 0.")) << page;
  EXPECT_NE(page.find(".SH OPTIONS\n.TP\n\\fB\\-\\-version\\fR\n"), std::string::npos) << page;
  EXPECT_TRUE(page.ends_with(".SH END\n")) << page;
}

}  // namespace
}  // namespace spark::cli
