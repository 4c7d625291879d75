#include "demo_prompt.h"

namespace pallas::app {

std::string demo_prompt() {
  return R"(You ride along as my travel companion. Read this briefing first, then answer the question at its end. I am at the wheel, so write for somebody who listens: whole sentences, no lists, no headings.

The drive. We start at eight in the evening at the old tram depot in the north of the city and head south along the avenue of plane trees. The avenue is straight for about a mile and has a traffic light at every second corner. At this hour the lights run in a green wave if one keeps a steady thirty-five miles an hour, so there is no point in racing. After the fourth light the avenue passes the covered market, which closes at nine. On market days the vans of the traders stand in the right lane, and it is wise to keep left from the pharmacy on.

The market. It was built of iron and glass a hundred and forty years ago, after a fire had destroyed the wooden stalls that stood there before. Inside there is a baker who makes flat bread with caraway, a woman who repairs umbrellas, and a stall that sells nothing but honey from the roofs of the city.

The river. South of the market the avenue crosses the river on the stone bridge. The bridge is narrow: two lanes, a tram line in each, and a kerb that is higher than it looks. In autumn there is often fog on the water between eight and ten, and the lamps on the bridge are turned to half their strength to save power. On the far bank one sees the brick tower of the waterworks, which is lit in blue.

The hill. Behind the bridge the road climbs in three bends to the botanical garden. The second bend is the sharpest and has a bad camber; a sign asks for twenty miles an hour, and it is right. At the top there is a small parking lot beside the glass house. From there one sees the whole valley, the harbour cranes, and on clear nights the light of the island twenty-six miles out at sea. The garden itself is closed in the evening, but the gardener's family lives in the gate house and keeps the path to the view point open. They grow an old kind of pear against the south wall, and in September they leave a basket of pears at the gate for anybody who walks by.

The guests. We are going to meet two friends at the view point. One of them builds violins and is always early; the other one flies in from abroad, has never been to this city, and would like to know why anybody would drive up a hill in the rain to look at a harbour. They have brought a thermos of tea, and we bring the flat bread and the honey, if we reach the market before it closes.

The question. Please tell me, in the order in which we will pass them, what I should know about each place on the way, what I should watch out for as a driver, and what we could tell our guest from abroad about it once we are up there. Take your time and tell it as a story, with as much colour as you like; the drive is long enough.)";
}

}  // namespace pallas::app
