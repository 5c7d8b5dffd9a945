"""Texts of `.dpomdp` files that tests read and spoil."""

SMALL = """\
agents: 2
discount: 0.9
values: reward
states: dry wet
start: 0.25 0.75
actions:
stay go
stay go
observations:
sun rain
2
T: * :
identity
T: go go : uniform
O: * : dry : uniform
O: * : wet : rain 1 : 0.5
O: * : wet : rain 0 : 0.5
R: go go : dry : * : * : 3
"""
"""Every line is one that a test replaces; line 1 is `agents`, line 12 the first `T`."""

RELAY = """\
# Three named agents pass a parcel on; costs, a joint index, partial wildcards, rows over lines.
agents: north mid south
discount: 0.95   # not applied by the task
values: cost
states: at-north at-mid at-south lost
start exclude: lost 2
actions:
keep pass
keep pass shout
1
observations:
2
none parcel
1

T: * : identity
T: pass * * : at-north : at-north : 0
T: pass * * : at-north : at-mid : 1e0
T: * pass * : 1 :
0 .25
.5 2.5e-1
T: 5 : lost : uniform

O: * : * : * parcel * : 0.25
O : * : * : * none * : 0.25
O: * : at-south : 1 0 0 0
O: keep shout * : lost :
0 0 0 1

R: * : * : * : * : 1
R: * shout * : at-mid : at-mid : 1 parcel 0 : +20
R: * shout * : lost : lost :
1 2
3 4
R: 2 : at-south :
9 9 9 9
9 9 9 9
8 8 8 8
0 0 0 -1
R:pass shout 0:*:*:*:7
"""
"""Joint actions, by number: north keeps in 0 to 2; mid keeps, passes, shouts, by turns."""
