#include "engine/fake_text.h"

#include <set>

namespace pallas::engine {
namespace {

TEST(FakeTextCodec, words_are_distinct_and_survive_the_way_to_text_and_back) {
  const FakeTextCodec codec;
  std::set<std::string> pieces;
  std::string text;
  std::vector<TokenId> ids;
  for (TokenId id = fake_id::kStopWord; id < fake_id::kVocabulary; ++id) {
    pieces.insert(codec.piece(id));
    text += codec.piece(id);
    ids.push_back(id);
  }
  EXPECT_EQ(pieces.size(), ids.size());
  EXPECT_EQ(*codec.tokenize(text), ids);
}

TEST(FakeTextCodec, parts_of_characters_join_to_whole_ones_by_continuation) {
  const FakeTextCodec codec;
  std::set<std::string> characters;
  for (TokenId id = fake_id::kFirstPart; id <= fake_id::kLastPart; ++id) {
    if (FakeTextCodec::is_continuation(id)) continue;
    std::string character = codec.piece(id);
    for (auto next = FakeTextCodec::continuation(id); next;
         next = FakeTextCodec::continuation(*next)) {
      character += codec.piece(*next);
    }
    characters.insert(character);
  }
  EXPECT_EQ(characters, (std::set<std::string>{"\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80"}));
}

TEST(FakeTextCodec, control_tokens_and_ids_outside_the_vocabulary_have_no_text) {
  const FakeTextCodec codec;
  for (const TokenId id : {fake_id::kEnd, fake_id::kBegin, fake_id::kRole, fake_id::kMessageEnd,
                           fake_id::kVocabulary, TokenId{-1}}) {
    EXPECT_EQ(codec.piece(id), "");
  }
  EXPECT_TRUE(codec.is_end_of_generation(fake_id::kEnd));
  EXPECT_FALSE(codec.is_end_of_generation(fake_id::kFirstWord));
}

TEST(FakeTextCodec, a_chat_depends_on_roles_contents_and_order) {
  const FakeTextCodec codec;
  const ChatMessage system{"system", "be brief"}, user{"user", "where are we"};
  const auto chat = *codec.render_chat({system, user});
  EXPECT_EQ(chat, *codec.render_chat({system, user}));
  EXPECT_NE(chat, *codec.render_chat({user, system}));
  EXPECT_NE(chat, *codec.render_chat({{"user", "be brief"}, user}));
  for (const TokenId id : chat) EXPECT_TRUE(id >= 0 && id < codec.vocabulary_size());
  EXPECT_EQ(codec.render_chat({}).error().code, Errc::kInvalidArgument);
}

TEST(FakeTextCodec, only_an_object_is_a_schema) {
  const FakeTextCodec codec;
  EXPECT_TRUE(codec.grammar_of_schema(R"( {"type":"object"})"));
  EXPECT_EQ(codec.grammar_of_schema("[]").error().code, Errc::kInvalidArgument);
  EXPECT_EQ(codec.grammar_of_schema("").error().code, Errc::kInvalidArgument);
}

}  // namespace
}  // namespace pallas::engine
