"""All faults, one after the other: state survives each of them exactly once, or the campaign says where it did not.

    ./dev campaign faults [--seed S] [--quick] [--only FAULT...] [--case CASE...] [--workers N]

``tests.faults.campaign.case`` says what a fault is, a module each has its cases, ``runner`` runs them.
"""
