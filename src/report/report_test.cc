// A study's report: the three files agree, say their conditions, and need nothing beside themselves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/mapped_file.h"
#include "base/utf8.h"
#include "report/html.h"
#include "report/study_page.h"
#include "report/write_report.h"

namespace wring::report {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

evaluate::DocumentResult document(int number, double factor) {
  evaluate::DocumentResult d;
  d.id = "doc-" + std::to_string(number);
  d.domain = number % 3 == 0 ? "ko" : number % 3 == 1 ? "en" : "code";
  d.sha256 = "sha" + std::to_string(number);
  d.tokens = 1023;
  d.bytes = 3000 + number;
  d.nll_sum = 1023 * (1.8 + 0.1 * (number % 5) + factor * (0.02 + 0.003 * (number % 4)));
  if (factor == 0) return d;
  for (int i = 0; i < 32; ++i) d.kl.push_back(factor * 0.001 * (1 + (i * number) % 29));
  d.same_top = 32 - static_cast<int>(factor * (number % 3));
  d.delta_p_squares = factor * 0.02;
  d.worst_tokens = {{d.id, 17 + number, "</script>", "return\n\tx <b>", 9.5, 1.25}};
  return d;
}

lab::CandidateResult candidate(const std::string& name, const std::string& type, double factor,
                               std::uint64_t bytes, double decode,
                               const std::vector<evaluate::DocumentResult>& reference,
                               std::vector<evaluate::DocumentResult>& documents) {
  lab::CandidateResult c;
  c.name = name;
  c.type = type;
  c.file_bytes = bytes;
  c.bits_per_weight = 16.0 * static_cast<double>(bytes) / 270e6;
  c.file_bits_per_weight = c.bits_per_weight + 1;
  for (int i = 0; i < 12; ++i) documents.push_back(document(i, factor));
  c.eval = evaluate::summarize(documents, reference);
  if (!reference.empty()) {
    c.quantize_seconds = 3.5;
    c.relative_error = 0.0421;
    c.file_hash = "0123456789abcdef0123456789abcdef";
  }
  c.speeds = {{128,
               1,
               {120, 118, 131},
               {500, 480, 510},
               {decode, decode - 1, decode + 2},
               {bytes, 1000000, 2000000}}};
  return c;
}

lab::StudyResults study() {
  lab::StudyResults s;
  s.model = "sample <hf>";
  s.model_hash = "aaaa1111";
  s.architecture = "llama";
  s.parameters = 134515008;
  std::vector<evaluate::DocumentResult> reference, q8, q4, q4i;
  s.candidates.push_back(candidate("source", "BF16", 0, 270000000, 20, {}, reference));
  s.candidates.push_back(candidate("q8_0", "Q8_0", 0.01, 150000000, 22, reference, q8));
  s.candidates.push_back(candidate("q4_k", "Q4_K", 1, 110000000, 25, reference, q4));
  s.candidates.push_back(candidate("q4_k+imatrix", "Q4_K", 0.7, 110000320, 24, reference, q4i));
  s.candidates.back().weighted_error = 0.0157;
  s.pairs = {{"q8_0", "q4_k", evaluate::delta_nll(q8, q4)},
             {"q4_k", "q4_k+imatrix", {0.001, -0.002, 0.003, 0.4}}};
  s.compute_mode = "exact";
  s.cpu_level = "avx2";
  s.cpu = "Some CPU";
  s.build = "0.1.0";
  s.threads = 2;
  s.read_bandwidth_gbps = 12.5;
  s.speed_compute_mode = "packed";
  s.fp32_gmacs = 100.25;
  s.int8_gmacs = 300.5;
  s.context = 1024;
  s.kl_positions = "32";
  s.documents_planned = 12;
  s.calibration_documents = 16;
  s.calibration_tokens = 16384;
  s.speed = {{128}, 32, {1}, 1, 3};
  s.protocol = "protocol-id";
  s.root_hash = "feedfacefeedfacefeedfacefeedfacefeedfacefeedfacefeedfacefeedface";
  s.rows = 60;
  return s;
}

class ReportTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // WRING_REPORT_DIR keeps the files, to be looked at.
    const char* kept = std::getenv("WRING_REPORT_DIR");
    folder_ = kept != nullptr ? fs::path(kept)
                              : fs::temp_directory_path() / ("wring-report-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    files_ = write_report(study(), folder_);
    html_ = read_text_file(files_.html, 1 << 24);
    markdown_ = read_text_file(files_.markdown, 1 << 24);
    json_ = nlohmann::json::parse(read_text_file(files_.json, 1 << 24));
  }
  void TearDown() override {
    if (std::getenv("WRING_REPORT_DIR") == nullptr) fs::remove_all(folder_);
  }

  fs::path folder_;
  ReportFiles files_;
  std::string html_, markdown_;
  nlohmann::json json_;
};

TEST_F(ReportTest, SaysTheSameNumbersInAllForms) {
  const double delta = json_["candidates"][2]["eval"]["delta_nll"]["mean"];
  EXPECT_NEAR(delta, 0.02 + 0.003 * 1.5, 1e-12);
  EXPECT_EQ(json_["table"][2]["delta_nll"].get<double>(), delta);
  EXPECT_THAT(html_, HasSubstr("+0.0245 ["));
  EXPECT_THAT(markdown_, HasSubstr("+0.0245 \\["));
  EXPECT_THAT(study_table(study()).to_text(), HasSubstr("+0.0245 ["));
  EXPECT_EQ(json_["candidates"][3]["weighted_error"], 0.0157);
  EXPECT_TRUE(json_["candidates"][2]["weighted_error"].is_null());
  EXPECT_THAT(html_, HasSubstr("0.0157"));
  EXPECT_THAT(markdown_, HasSubstr("0.0157"));
}

TEST_F(ReportTest, NeedsNothingBesideItself) {
  EXPECT_TRUE(is_valid_utf8(html_));
  EXPECT_THAT(html_, HasSubstr("Chart.js v3.9.1"));
  for (const char* fetch : {"<link", "src=\"", "@import", "url("}) {
    EXPECT_THAT(html_.substr(0, html_.find("Chart.js v3.9.1")), Not(HasSubstr(fetch))) << fetch;
  }
  EXPECT_THAT(html_, HasSubstr("name=\"viewport\""));
  EXPECT_THAT(html_, HasSubstr("prefers-color-scheme: dark"));
  EXPECT_THAT(html_, HasSubstr("<canvas id=\"delta-nll\""));
  EXPECT_THAT(html_, HasSubstr("<canvas id=\"size-kl\""));
}

TEST_F(ReportTest, TextsFromDocumentsCannotLeaveTheirPlace) {
  EXPECT_THAT(html_, Not(HasSubstr("sample <hf>")));
  EXPECT_THAT(html_, HasSubstr("sample &lt;hf&gt;"));
  const std::size_t data = html_.find("id=\"study\">");
  const std::string embedded = html_.substr(data, html_.find("</script>", data) - data);
  const nlohmann::json read = nlohmann::json::parse(embedded.substr(embedded.find('>') + 1));
  EXPECT_EQ(read, json_);  // the whole study, though tokens hold "</script>"
  EXPECT_THAT(html_, HasSubstr("return⏎⇥x &lt;b&gt;"));
}

TEST_F(ReportTest, NamesConditionsAndRoot) {
  for (const char* said : {"exact", "avx2", "Some CPU", "protocol-id", "aaaa1111", "16 documents",
                           "12 of 12 planned", "12.5 GB/s", "3 runs", "20260922",
                           "feedfacefeedfacefeedfacefeedfacefeedfacefeedfacefeedfacefeedface"}) {
    EXPECT_THAT(html_, HasSubstr(said)) << said;
    EXPECT_THAT(markdown_, HasSubstr(said)) << said;
  }
}

TEST_F(ReportTest, SaysWhatWasNotMeasured) {
  EXPECT_THAT(markdown_, HasSubstr("Questions, instructions, free replies: none was asked"));
  EXPECT_THAT(markdown_, HasSubstr("with only 12"));
  EXPECT_THAT(markdown_, HasSubstr("What packed mode adds: speed is measured in it"));
  lab::StudyResults more = study();
  more.candidates[0].eval.documents = 128;
  more.compute_mode = "packed";
  const std::string other = to_markdown(study_page(more, Language::kEnglish));
  EXPECT_THAT(other, Not(HasSubstr("intervals tend to be too narrow")));
  EXPECT_THAT(other, Not(HasSubstr("What packed mode adds")));
}

TEST_F(ReportTest, RanksOnlyWhatIsToldApart) {
  EXPECT_THAT(markdown_, HasSubstr("Smallest loss among the candidates: q8\\_0"));
  EXPECT_THAT(markdown_, HasSubstr("Smallest file: q4\\_k, 110.0 MB instead of 270.0 MB (40.7 %)"));
  EXPECT_THAT(markdown_, HasSubstr("tokens/s (source 20.0)"));
  EXPECT_THAT(markdown_,
              HasSubstr("not told apart by these documents (the interval of their difference holds 0): "
                        "q4\\_k / q4\\_k+imatrix"));
}

TEST_F(ReportTest, AQuantizedSourceIsNamed) {
  EXPECT_THAT(markdown_, Not(HasSubstr("The source is itself quantized")));
  lab::StudyResults s = study();
  s.already_quantized = true;
  EXPECT_THAT(to_markdown(study_page(s, Language::kEnglish)),
              HasSubstr("The source is itself quantized (BF16)"));
}

TEST_F(ReportTest, ASourceAloneIsAReportToo) {
  lab::StudyResults s = study();
  s.candidates.resize(1);
  s.candidates[0].speeds.clear();
  s.pairs.clear();
  const ReportFiles files = write_report(s, folder_ / "alone");
  const std::string markdown = read_text_file(files.markdown, 1 << 24);
  EXPECT_THAT(markdown, HasSubstr("Speed."));
  EXPECT_THAT(read_text_file(files.html, 1 << 24), Not(HasSubstr("<canvas")));
}

}  // namespace
}  // namespace wring::report
