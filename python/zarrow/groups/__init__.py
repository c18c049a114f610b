"""Methods of groups: members, attributes and tables."""
